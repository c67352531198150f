import { readSourcesReport } from '@thv/catalog/status/sources-report'
import { describe, expect, it } from 'vitest'
import { syncFactsOf } from './sync-status.ts'

const MAX_CONDITION = 32_768

describe('syncFactsOf', () => {
  it.each([
    ['failed', 0],
    ['complete', 7],
  ])('keeps conditions about thousands of sources short: %s', (phase, problemCount) => {
    const sources = Array.from({ length: 5_000 }, (_, index) => ({
      name: `source-${index}`,
      phase,
      problemCount,
      message: 'm'.repeat(1_000),
    }))
    const facts = syncFactsOf(readSourcesReport(JSON.stringify({ sources })), undefined)
    const bad = facts.conditions.filter(({ status }) => status === 'False')
    expect(bad.length).toBeGreaterThan(0)
    for (const { message } of bad) {
      expect(message).toContain('source-0: ')
      expect(message).toContain('4995 more')
      expect(message.length).toBeLessThan(MAX_CONDITION)
    }
  })
})
