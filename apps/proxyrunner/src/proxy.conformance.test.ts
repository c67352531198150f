import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { runConformance } from '@thv/testkit/mcp/conformance'
import { fixtureCommand } from '@thv/testkit/mcp/fixture-process'
import { describe, expect, it } from 'vitest'
import { type RunnerProcess, spawnReadyRunner } from './testing/runner-process.ts'

/* The official suite through the proxy, twice on one runner: nothing may be left over from the first time. */

const SCORED = { '2025-11-25': 30, '2026-07-28': 37 } as const

const BACKENDS: readonly [string, () => Promise<RunnerProcess>][] = [
  [
    'streamable-http',
    async () => {
      const port = await freePort()
      const { command, args } = fixtureCommand({ transport: 'http', era: 'dual', port })
      return spawnReadyRunner({ image: `exec://${command}`, cmd_args: args, transport: 'streamable-http', target_port: port })
    },
  ],
  [
    'stdio',
    async () => {
      const { command, args } = fixtureCommand({ transport: 'stdio', era: 'dual' })
      return spawnReadyRunner({ image: `exec://${command}`, cmd_args: args, transport: 'stdio' })
    },
  ],
]

describe('the official suite through the proxy', () => {
  it.each(BACKENDS)(
    'scores everything of both revisions, twice: backend with %s [002-060]',
    { timeout: 600_000 },
    async (_transport, start) => {
      await using runner = await start()
      for (let time = 0; time < 2; time++) {
        for (const requirements of ['2025-11-25', '2026-07-28'] as const) {
          const report = await runConformance({ url: runner.url.replace('127.0.0.1', 'localhost'), requirements })
          expect({ requirements, failures: report.failures, scored: report.scored }).toEqual({
            requirements,
            failures: [],
            scored: { passed: SCORED[requirements], total: SCORED[requirements] },
          })
        }
      }
    },
  )
})
