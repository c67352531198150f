import { describe, expect, it } from 'vitest'
import { type ConformanceOptions, runConformance } from './conformance.ts'
import { startFixture } from './fixture.ts'
import type { FixtureOptions } from './state/options.ts'

type Served = FixtureOptions & { readonly transport?: 'http' }

interface Case {
  readonly title: string
  readonly fixture: Served
  readonly run: Omit<ConformanceOptions, 'url'>
  readonly scored: number
  readonly all: number
}

const LEGACY = { run: { requirements: '2025-11-25' }, scored: 30, all: 33 } as const
const MODERN = { run: { requirements: '2026-07-28' }, scored: 37, all: 50 } as const

const CASES: readonly Case[] = [
  { title: 'both eras: 2025-11-25', fixture: { era: 'dual' }, ...LEGACY },
  { title: 'both eras: 2026-07-28', fixture: { era: 'dual' }, ...MODERN },
  { title: 'both eras: every scenario there is', fixture: { era: 'dual' }, run: { suite: 'all' }, scored: 65, all: 65 },
  { title: 'both eras: 2025-06-18', fixture: { era: 'dual' }, run: { suite: 'all', specVersion: '2025-06-18' }, scored: 27, all: 27 },
  { title: 'both eras: 2025-03-26', fixture: { era: 'dual' }, run: { suite: 'all', specVersion: '2025-03-26' }, scored: 1, all: 1 },
  { title: 'legacy only: 2025-11-25', fixture: { era: 'legacy' }, ...LEGACY },
  { title: 'modern only: 2026-07-28', fixture: { era: 'modern' }, ...MODERN },
  { title: 'event streams only: 2025-11-25', fixture: { era: 'dual', responseMode: 'sse' }, ...LEGACY },
  { title: 'event streams only: 2026-07-28', fixture: { era: 'dual', responseMode: 'sse' }, ...MODERN },
]

/** The fixture is what the proxies are judged by, so it must itself be beyond doubt: every scenario, not only the scored ones. */
describe('the fixture passes the official conformance suite by itself', () => {
  it.for(CASES)('$title', async ({ fixture: options, run, scored, all }) => {
    await using fixture = await startFixture(options)
    const report = await runConformance({ url: fixture.url, ...run })
    expect({ scored: report.scored, all: report.all, failures: report.failures, exitCode: report.exitCode }).toEqual({
      scored: { passed: scored, total: scored },
      all: { passed: all, total: all },
      failures: [],
      exitCode: 0,
    })
  })

  it('and fails the revision it does not speak, so the suite can tell', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    const report = await runConformance({ url: fixture.url, scenario: 'server-initialize', specVersion: '2025-11-25' })
    expect(report.scored).toEqual({ passed: 0, total: 1 })
    expect(report.failures).not.toEqual([])
    expect(report.exitCode).toBe(1)
  })
})
