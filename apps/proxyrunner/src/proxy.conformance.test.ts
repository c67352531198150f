import { readFile } from 'node:fs/promises'
import { MEMORY_SETTINGS, memorySettings } from '@thv/programs/memory-settings'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { runConformance } from '@thv/testkit/mcp/conformance'
import { fixtureCommand } from '@thv/testkit/mcp/fixture-process'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { describe, expect, it } from 'vitest'
import { type RunnerProcess, spawnReadyRunner } from './testing/runner-process.ts'
import { startTokenForwarder } from './testing/token-forwarder.ts'

/* The official suite through the proxy, twice on one runner: nothing may be left over from the first time. */

const SCORED = { '2025-11-25': 30, '2026-07-28': 37 } as const
const REVISIONS = ['2025-11-25', '2026-07-28'] as const

const BACKENDS: readonly [string, (more?: object) => Promise<RunnerProcess>][] = [
  [
    'streamable-http',
    async (more) => {
      const port = await freePort()
      const { command, args } = fixtureCommand({ transport: 'http', era: 'dual', port })
      return spawnReadyRunner({ image: `exec://${command}`, cmd_args: args, transport: 'streamable-http', target_port: port, ...more })
    },
  ],
  [
    'stdio',
    async (more) => {
      const { command, args } = fixtureCommand({ transport: 'stdio', era: 'dual' })
      return spawnReadyRunner({ image: `exec://${command}`, cmd_args: args, transport: 'stdio', ...more })
    },
  ],
]

/** The memory settings of the image, as the system shows them. */
async function settingsOf({ pid }: RunnerProcess): Promise<Record<string, string>> {
  const variables = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').map((line) => line.split('='))
  return Object.fromEntries(variables.filter(([name = '']) => name in MEMORY_SETTINGS).map(([name, ...value]) => [name, value.join('=')]))
}

async function expectFullScore(url: string, requirements: (typeof REVISIONS)[number]): Promise<void> {
  const report = await runConformance({ url: url.replace('127.0.0.1', 'localhost'), requirements })
  expect({ requirements, failures: report.failures, scored: report.scored }).toEqual({
    requirements,
    failures: [],
    scored: { passed: SCORED[requirements], total: SCORED[requirements] },
  })
}

describe('the official suite through the proxy', () => {
  it.each(BACKENDS)(
    'scores everything of both revisions, twice: backend with %s [002-060]',
    { timeout: 600_000 },
    async (_transport, start) => {
      await using runner = await start()
      if (process.platform === 'linux') expect(await settingsOf(runner)).toEqual(memorySettings(process.env))
      for (let time = 0; time < 2; time++) for (const requirements of REVISIONS) await expectFullScore(runner.url, requirements)
    },
  )

  it.each(BACKENDS)(
    'scores the same with a token and policies that permit everything: backend with %s',
    { timeout: 600_000 },
    async (_transport, start) => {
      await using idp = await startOidcServer()
      const policies = ['permit(principal, action, resource);']
      await using runner = await start({
        oidc_config: { issuer: idp.issuer, audience: 'tests', allow_private_ip: true },
        authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies } },
      })
      const anonymous = await fetch(runner.url, { method: 'POST', body: '{}' })
      expect(anonymous.status).toBe(401)
      const token = await idp.token({ claims: { sub: 'ada' }, expiresInSeconds: 3_600 })
      await using forwarder = await startTokenForwarder(runner.url, token)
      for (const requirements of REVISIONS) await expectFullScore(forwarder.url, requirements)
    },
  )
})
