import { readFileSync, writeFileSync } from 'node:fs'
import { apiRequest } from '@thv/testkit/cluster/http-request'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { expect, it } from 'vitest'
import { allRows } from './all-rows.ts'
import { widgetDefinition } from './custom-rows.ts'
import { type ParityAnswer, runRow } from './testing/run-row.ts'

const GOLDEN = new URL('./parity.golden.json', import.meta.url)
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** RECORD_PARITY=1 writes what the real server says; otherwise it must still say so. */
describeCluster('recorded answers of the real API server', () => {
  it('are what it answers', async () => {
    const cluster = sharedCluster()
    const namespace = await testNamespace('parity')
    const name = String((widgetDefinition['metadata'] as { name: string }).name)
    await apiRequest(cluster, CRDS, { method: 'POST', body: widgetDefinition })
    await expect
      .poll(async () => (await apiRequest(cluster, `/apis/parity.example.com/v1/namespaces/${namespace}/widgets`)).status, {
        timeout: 20_000,
      })
      .toBe(200)
    const answers: Record<string, ParityAnswer[]> = {}
    const target = { url: cluster.url, caPem: cluster.caPem, adminToken: cluster.adminToken, namespace }
    try {
      for (const row of allRows) answers[row.name] = await runRow(target, row)
    } finally {
      await apiRequest(cluster, `${CRDS}/${name}`, { method: 'DELETE' })
    }
    if (process.env['RECORD_PARITY']) writeFileSync(GOLDEN, `${JSON.stringify(answers, null, 1)}\n`)
    expect(answers).toEqual(JSON.parse(readFileSync(GOLDEN, 'utf8')))
  })
})
