import { readFileSync, writeFileSync } from 'node:fs'
import { apiRequest } from '@thv/testkit/cluster/http-request'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { rowSets } from './all-rows.ts'
import { widgetDefinition } from './custom-rows.ts'
import { type ParityAnswer, type ParityTarget, runRow } from './testing/run-row.ts'

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** RECORD_PARITY=1 writes what the real server says; otherwise it must still say so. `-t NAME` takes one set. */
describeCluster('recorded answers of the real API server', () => {
  const crd = `${CRDS}/${String((widgetDefinition['metadata'] as { name: string }).name)}`
  let target: ParityTarget

  beforeAll(async () => {
    const cluster = sharedCluster()
    const namespace = await testNamespace('parity')
    await apiRequest(cluster, CRDS, { method: 'POST', body: widgetDefinition })
    await vi.waitFor(
      async () => expect((await apiRequest(cluster, `/apis/parity.example.com/v1/namespaces/${namespace}/widgets`)).status).toBe(200),
      20_000,
    )
    const cidr = await apiRequest(cluster, '/apis/networking.k8s.io/v1/servicecidrs/kubernetes')
    const serviceRange = (JSON.parse(cidr.text) as { spec: { cidrs: string[] } }).spec.cidrs[0] ?? ''
    target = { url: cluster.url, caPem: cluster.caPem, adminToken: cluster.adminToken, namespace, serviceRange }
  })
  afterAll(async () => {
    await apiRequest(sharedCluster(), crd, { method: 'DELETE' })
  })

  it.each(Object.keys(rowSets))('%s: are what it answers', async (name) => {
    const golden = new URL(`../../../recordings/apiserver/parity/${name}.golden.json`, import.meta.url)
    const answers: Record<string, ParityAnswer[]> = {}
    for (const row of rowSets[name] ?? []) answers[row.name] = await runRow(target, row)
    if (process.env['RECORD_PARITY']) writeFileSync(golden, `${JSON.stringify(answers, null, 1)}\n`)
    expect(answers).toEqual(JSON.parse(readFileSync(golden, 'utf8')))
  })
})
