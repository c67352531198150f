import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { fixtureCommand, spawnFixture } from '@thv/testkit/mcp/fixture-process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunnerProcess, spawnReadyRunner } from '../../apps/proxyrunner/src/testing/runner-process.ts'
import { FEATURE_SCENARIOS } from './sse/feature-scenarios.ts'
import { QUESTION_SCENARIOS } from './sse/question-scenarios.ts'
import { arrived } from './sse/scenario.ts'
import { SESSION_SCENARIOS } from './sse/session-scenarios.ts'
import { connectSse } from './sse/sse-peer.ts'
import { TOOL_SCENARIOS } from './sse/tool-scenarios.ts'

/*
 * HTTP+SSE has no official suite. This is a list of scenarios of our own, through the runner as users start it, driven by the official
 * client of the 1.x line: before a server that speaks HTTP+SSE itself, and before one that speaks stdio.
 */

const SCENARIOS = [...FEATURE_SCENARIOS, ...TOOL_SCENARIOS, ...QUESTION_SCENARIOS, ...SESSION_SCENARIOS]

type Config = Record<string, unknown>

const ARRANGEMENTS: readonly [string, (config?: Config) => Promise<RunnerProcess>][] = [
  [
    'an HTTP+SSE server',
    async (config) => {
      const port = await freePort()
      const { command, args } = fixtureCommand({ transport: 'sse', port })
      return await spawnReadyRunner({ image: `exec://${command}`, cmd_args: args, transport: 'sse', target_port: port, ...config })
    },
  ],
  [
    'a stdio server',
    async (config) => {
      const { command, args } = fixtureCommand({ transport: 'stdio' })
      return await spawnReadyRunner({ image: `exec://${command}`, cmd_args: args, transport: 'stdio', proxy_mode: 'sse', ...config })
    },
  ],
]

describe.each(ARRANGEMENTS)('HTTP+SSE before %s', (_behind, start) => {
  let runner: RunnerProcess
  beforeAll(async () => {
    runner = await start()
  })
  afterAll(() => runner?.[Symbol.asyncDispose]())

  it.each(SCENARIOS.map(({ name, run }) => [name, run] as const))('%s', async (_name, run) => {
    expect(runner.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/sse$/)
    await run(runner)
  })

  it('only the tools of the filter are there, under the names and with the words of the override [002-059] [002-082] [002-083] [002-084]', async () => {
    const tools_override = { echo: { name: 'say', description: 'Says it.' } }
    await using filtered = await start({ tools_filter: ['say', 'fixture_stats'], tools_override })
    await using peer = await connectSse(filtered.url)
    const { tools } = await peer.client.listTools()
    expect(tools.map(({ name, description }) => [name, description?.slice(0, 8)])).toEqual([
      ['say', 'Says it.'],
      ['fixture_stats', 'Counts o'],
    ])
    expect(await peer.json('say', { text: 'hi' })).toEqual({ text: 'hi' })
    for (const name of ['echo', 'greet']) await expect(peer.client.callTool({ name })).rejects.toMatchObject({ code: -32602 })
    // `say` and this one: the others did not get as far as the server.
    expect(await peer.json('fixture_stats')).toMatchObject({ methods: { 'tools/call': 2 } })
  })

  it('a call that is under way when the runner stops gets its answer', async () => {
    const ending = await start()
    await using peer = await connectSse(ending.url)
    const slow = await arrived(peer, () => peer.text('slow', { ms: 500 }))
    const ended = ending[Symbol.asyncDispose]()
    expect(await slow.answer).toBe('slept')
    await peer.client.close()
    await ended
  })
})

it('HTTP+SSE before a remote server: it gets the headers of the run config with every message', async () => {
  await using fixture = await spawnFixture({ transport: 'sse' })
  const header_forward = { add_plaintext_headers: { 'X-Tenant': 'blue' } }
  await using runner = await spawnReadyRunner({
    ...{ remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'sse', header_forward },
  })
  await using peer = await connectSse(runner.url)
  expect(await peer.json('report_request')).toMatchObject({ transport: 'sse', headers: { 'x-tenant': 'blue' } })
  const stats = await (await fetch(new URL('/admin/stats', fixture.url))).json()
  const { received } = stats as { received: { message: { method: string }; headers: Record<string, string> }[] }
  expect(received.map(({ message, headers }) => [message.method, headers['x-tenant']])).toEqual([
    ['initialize', 'blue'],
    ['notifications/initialized', 'blue'],
    ['tools/call', 'blue'],
  ])
})
