import { readFileSync, writeFileSync } from 'node:fs'
import { jsonEqual } from '@thv/kernel/json'
import { bearerToken, createKubeClient } from '@thv/kube'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { scenarioSets } from './all-scenarios.ts'
import { inParallel } from './testing/in-parallel.ts'
import { runScenario } from './testing/scenario.ts'
import type { Snapshot } from './testing/snapshot.ts'

/** Whoever of the real controllers hears of something first may act first: what they can do is looked for, not what they always do. */
const MAX_TRIES = 3

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
      const golden = new URL(`../../../../recordings/controllers/workload/parity/${name}.golden.json`, import.meta.url)
      const record = Boolean(process.env['RECORD_PARITY'])
      const known = record ? {} : (JSON.parse(readFileSync(golden, 'utf8')) as Record<string, Snapshot[]>)
      const results: Record<string, Snapshot[]> = {}
      await inParallel(scenarioSets[name] ?? [], 6, async (scenario) => {
        for (let tries = 1; tries <= MAX_TRIES; tries++) {
          const namespace = await testNamespace('workload')
          const goldens = record ? undefined : (known[scenario.name] ?? [])
          results[scenario.name] = await runScenario(scenario, { client, namespace, goldens })
          if (record || jsonEqual(results[scenario.name], goldens)) return
          console.warn(`${scenario.name}: not what was recorded (${tries} of ${MAX_TRIES} tries)`)
        }
      })
      const ordered = Object.fromEntries((scenarioSets[name] ?? []).map((scenario) => [scenario.name, results[scenario.name]]))
      if (record) writeFileSync(golden, `${JSON.stringify(ordered, null, 1)}\n`)
      else for (const [scenario, seen] of Object.entries(ordered)) expect(seen, scenario).toEqual(known[scenario])
    },
    600_000,
  )
})
