import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scenarioSets } from './all-scenarios.ts'
import { type OurPlane, startOurPlane } from './testing/our-plane.ts'
import { runScenario } from './testing/scenario.ts'
import type { Snapshot } from './testing/snapshot.ts'

describe('parity with the recorded work of the real workload controllers', () => {
  let plane: OurPlane
  let count = 0

  beforeAll(async () => {
    plane = await startOurPlane()
  })
  afterAll(async () => {
    await plane[Symbol.asyncDispose]()
    expect(plane.errors).toEqual([])
  })

  describe.each(Object.keys(scenarioSets))('%s', (set) => {
    const scenarios = scenarioSets[set] ?? []
    const goldens = goldensOf(set)

    it('has a record of every scenario, under a name of its own', () => {
      expect(Object.keys(goldens)).toEqual(scenarios.map(({ name }) => name))
    })

    it.concurrent.for([...scenarios])('$name', async (scenario, { expect }) => {
      const stage = await plane.stage(`scenario-${++count}`)
      const golden = goldens[scenario.name] ?? []
      expect(await runScenario(scenario, { ...stage, goldens: golden })).toEqual(golden)
    })
  })
})

/** Recording of the real controllers; workloads.record.test.ts compares it with them. */
function goldensOf(set: string): Record<string, Snapshot[]> {
  return JSON.parse(
    readFileSync(new URL(`../../../../recordings/controllers/workload/parity/${set}.golden.json`, import.meta.url), 'utf8'),
  ) as Record<string, Snapshot[]>
}
