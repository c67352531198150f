import { runConformance } from '@thv/testkit/mcp/conformance'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

/*
 * The official suite through the virtual server, in every combination of eras, twice on one server. One backend without prefix: the suite
 * knows the names. Tasks are not offered; the tools that wait for them are hidden, or their scenarios, which are not scored, would take minutes.
 */

const TASK_TOOLS = ['slow_compute', 'failing_job', 'protocol_error_job', 'confirm_delete', 'multi_input', 'test_tool_with_task']
const PRIORITY = {
  conflictResolution: 'priority',
  conflictResolutionConfig: { priorityOrder: ['one'] },
  tools: [{ workload: 'one', exclude: TASK_TOOLS }],
}

const LEGACY = { requirements: '2025-11-25' } as const
const MODERN = { requirements: '2026-07-28' } as const

/** A legacy question has no key of its own, and questions come in one round only if they come at once. */
const UNTRANSLATABLE = ['input-required-result-basic-elicitation', 'input-required-result-multiple-input-requests'] as const

const COMBINATIONS = [
  { client: 'legacy', backend: 'legacy', judged: LEGACY, atLeast: 30, mayFail: [] },
  { client: 'legacy', backend: 'modern', judged: LEGACY, atLeast: 30, mayFail: [] },
  { client: 'legacy', backend: 'dual', judged: LEGACY, atLeast: 30, mayFail: [] },
  { client: 'modern', backend: 'modern', judged: MODERN, atLeast: 37, mayFail: [] },
  { client: 'modern', backend: 'dual', judged: MODERN, atLeast: 37, mayFail: [] },
  { client: 'modern', backend: 'legacy', judged: MODERN, atLeast: 35, mayFail: UNTRANSLATABLE },
] as const

describe('the official suite through the virtual server', () => {
  it.each(COMBINATIONS)('$client client, $backend backend', async ({ backend: era, judged, atLeast, mayFail }) => {
    await using fixture = await startFixture({ era })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config: { aggregation: PRIORITY } })
    const url = vmcp.url.replace('127.0.0.1', 'localhost')
    for (let time = 0; time < 2; time++) {
      const { scored, scenarios } = await runConformance({ url, ...judged })
      const failed = scenarios.filter((each) => each.scored && !each.passed).map(({ scenario }) => scenario)
      expect(failed.filter((scenario) => !mayFail.some((known) => known === scenario))).toEqual([])
      expect(scored.passed).toBeGreaterThanOrEqual(atLeast)
    }
  })
})
