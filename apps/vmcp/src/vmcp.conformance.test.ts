import { runConformance } from '@thv/testkit/mcp/conformance'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

/* The official suite through the virtual server, in every combination of eras. One backend without prefix: the suite knows names. */

const PRIORITY = { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['one'] } }

const COMBINATIONS = [
  { requirements: '2025-11-25', era: 'legacy', scored: 30 },
  { requirements: '2026-07-28', era: 'modern', scored: 37 },
  { requirements: '2025-11-25', era: 'modern', scored: 30 },
  { requirements: '2026-07-28', era: 'legacy', scored: 26 },
] as const

describe('the official suite through the virtual server', () => {
  it.each(COMBINATIONS)('requirements of $requirements, backend of the $era era', { timeout: 300_000 }, async ({ requirements, era, scored }) => {
    await using fixture = await startFixture({ era })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config: { aggregation: PRIORITY } })
    const report = await runConformance({ url: vmcp.url.replace('127.0.0.1', 'localhost'), requirements })
    console.log(requirements, era, report.scored, report.failures, report.scenarios.filter((s) => s.scored && !s.passed).map((s) => s.scenario))
    expect(report.scored.passed).toBeGreaterThanOrEqual(scored)
  })
})
