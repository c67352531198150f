import { runConformance } from '@thv/testkit/mcp/conformance'
import { fixtureCommand } from '@thv/testkit/mcp/fixture-process'
import type { FixtureOptions } from '@thv/testkit/mcp/state/options'
import { describe, expect, it } from 'vitest'
import { createLocalRuntime } from '../../runtime/local/local-runtime.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { configOf, memoryLog } from '../../runtime/testing/runtime-fixtures.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'

/* The newest revision of each era, twice on one runner with a dual server, is with the tests of the whole proxy. */

function runtimeFor(options: FixtureOptions): Runtime {
  const { command, args } = fixtureCommand({ transport: 'stdio', ...options })
  return createLocalRuntime({ config: configOf({ image: `exec://${command}`, cmd_args: args, transport: 'stdio' }), log: memoryLog() })
}

describe('the official suite through a runner with a stdio server', () => {
  it.each(['2025-03-26', '2025-06-18'])('passes everything of revision %s', async (specVersion) => {
    await using runner = await startStdioRunner({ runtime: runtimeFor({ era: 'dual', stdioMode: 'latch' }) })
    const report = await runConformance({ url: runner.url, suite: 'all', specVersion })
    expect([report.failures, report.all.passed]).toEqual([[], report.all.total])
  })

  it.each([
    ['legacy', '2025-11-25', 30, 33],
    ['modern', '2026-07-28', 37, 50],
  ] as const)('passes everything of the %s era on the only process of a pod, which is shared', async (era, requirements, scored, all) => {
    const runtime = { ...runtimeFor({ era }), name: 'kubernetes', stdioCapacity: 1 } as const
    await using runner = await startStdioRunner({ runtime })
    const report = await runConformance({ url: runner.url, requirements })
    expect(report.failures).toEqual([])
    expect([report.scored, report.all]).toEqual([
      { passed: scored, total: scored },
      { passed: all, total: all },
    ])
  })
})
