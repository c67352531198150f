import { readFileSync, writeFileSync } from 'node:fs'
import { bearerToken, createKubeClient } from '@thv/kube'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { scenarioSets } from './all-scenarios.ts'
import { inParallel } from './testing/in-parallel.ts'
import { runScenario } from './testing/scenario.ts'
import type { Snapshot } from './testing/snapshot.ts'

/** RECORD_PARITY=1 writes what the real controllers do; otherwise they must still do so. `-t SET` takes one set. */
describeCluster('recorded work of the real workload controllers', () => {
  let client: ReturnType<typeof createKubeClient>

  beforeAll(() => {
    const { url, caPem, adminToken } = sharedCluster()
    client = createKubeClient({ server: url, auth: bearerToken(adminToken), tls: { ca: caPem } })
  })
  afterAll(() => client.close())

  it.each(Object.keys(scenarioSets))(
    '%s: is what they do',
    async (name) => {
      const golden = new URL(`./${name}.golden.json`, import.meta.url)
      const record = Boolean(process.env['RECORD_PARITY'])
      const known = record ? {} : (JSON.parse(readFileSync(golden, 'utf8')) as Record<string, Snapshot[]>)
      const results: Record<string, Snapshot[]> = {}
      await inParallel(scenarioSets[name] ?? [], 6, async (scenario) => {
        const namespace = await testNamespace('workload')
        const goldens = record ? undefined : (known[scenario.name] ?? [])
        results[scenario.name] = await runScenario(scenario, { client, namespace, goldens })
      })
      const ordered = Object.fromEntries((scenarioSets[name] ?? []).map((scenario) => [scenario.name, results[scenario.name]]))
      if (record) writeFileSync(golden, `${JSON.stringify(ordered, null, 1)}\n`)
      else expect(ordered).toEqual(known)
    },
    600_000,
  )
})
