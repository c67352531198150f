import { readFileSync, writeFileSync } from 'node:fs'
import { jsonEqual } from '@thv/kernel/json'
import { bearerToken, createKubeClient } from '@thv/kube'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { scenarioSets } from './all-scenarios.ts'
import { inParallel } from './testing/in-parallel.ts'
import { runScenario } from './testing/scenario.ts'
import type { Snapshot } from './testing/snapshot.ts'

/** The real controllers may act in more than one order: the recording holds one that they take, not the only one. */
const MAX_TRIES = 3

/** Compares the recordings with the real controllers; RECORD=1 writes them instead. `-t SET` takes one set. */
describeCluster('recordings of the real workload controllers', () => {
  let client: ReturnType<typeof createKubeClient>

  beforeAll(() => {
    const { url, caPem, adminToken } = sharedCluster()
    client = createKubeClient({ server: url, auth: bearerToken(adminToken), tls: { ca: caPem } })
  })
  afterAll(() => client.close())

  it.each(Object.keys(scenarioSets))(
    '%s: the recording matches the real controllers',
    async (name) => {
      const golden = new URL(`../../../../recordings/controllers/workload/parity/${name}.golden.json`, import.meta.url)
      const record = process.env['RECORD'] !== undefined
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
      expect(Object.keys(ordered)).not.toEqual([])
      if (!record) for (const [scenario, seen] of Object.entries(ordered)) expect(seen, scenario).toEqual(known[scenario])
    },
    600_000,
  )
})
