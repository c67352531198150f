import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allControllers } from '../../platform/all-controllers.ts'
import { scenarioSets } from './scenario-sets.ts'
import { type EmbeddedPlane, startEmbeddedPlane } from './testing/embedded-plane.ts'
import { define, readGoldens } from './testing/recorded-scenarios.ts'
import { runScenario } from './testing/run-scenario.ts'

const patience = { stillMs: 300, limitMs: 60_000 }

describe.each(scenarioSets)('$name as on the real control plane', ({ name, set, file }) => {
  const goldens = readGoldens(file)
  let embedded: EmbeddedPlane

  beforeAll(async () => {
    embedded = await startEmbeddedPlane(allControllers())
    await define({ client: embedded.env.client, prefix: name }, set)
  })
  afterAll(async () => {
    await embedded[Symbol.asyncDispose]()
    expect(embedded.errors).toEqual([])
  })

  it('has a recording of every scenario', () => {
    expect(Object.keys(goldens)).toEqual(set.scenarios.map((scenario) => scenario.name))
  })

  it.concurrent.for(set.scenarios)('$name', async (scenario, { expect }) => {
    const expected = goldens[scenario.name]
    const plane = { client: embedded.env.client, prefix: name }
    expect(await runScenario(plane, { set, scenario, expected, patience })).toEqual(expected)
  })
})
