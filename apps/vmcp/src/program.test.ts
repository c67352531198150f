import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { createLogger } from '@thv/telemetry/log'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { buildProgram } from './program.ts'

const folder = mkdtempSync(join(tmpdir(), 'vmcp-program-'))
afterAll(() => rmSync(folder, { recursive: true }))

const MINIMAL = {
  name: 'eng',
  groupRef: 'g',
  backends: [{ name: 'one', url: 'http://127.0.0.1:1/mcp' }],
  incomingAuth: { type: 'anonymous' },
  outgoingAuth: { source: 'inline' },
  aggregation: { conflictResolution: 'prefix' },
}

const COMPOSED = {
  name: 'both',
  description: 'Calls both.',
  parameters: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
  steps: [
    { id: 'first', tool: 'one.a', arguments: { name: '{{.params.who}}' } },
    { id: 'second', tool: 'one.b', dependsOn: ['first'], condition: '{{eq .params.who "Ada"}}' },
  ],
}

function fileWith(change: object): string {
  const file = join(folder, 'config.yaml')
  writeFileSync(file, stringify({ ...MINIMAL, ...change }))
  return file
}

function program(env: Record<string, string> = {}) {
  const printed: string[] = []
  const lifecycle = createLifecycle()
  const log = createLogger({ level: 'error', write: () => {} } as never)
  const built = buildProgram({ out: (text) => printed.push(text), env, lifecycle, log })
  return { lifecycle, printed, run: (...args: string[]) => built.parseAsync(['node', 'vmcp', ...args]) }
}

describe('the command line of vmcp', () => {
  it('shows a composite tool before it runs', async () => {
    const { run, printed } = program()
    const file = fileWith({ compositeTools: [COMPOSED] })
    await run('workflow', 'both', '--config', file, '--dry-run', '--params', '{"who":"Bob"}')
    expect(printed.join('')).toMatch(/first: call one\.a \{"name":"Bob"\}[\s\S]*second: call one\.b[\s\S]*if false/)
    await run('workflow', 'both', '--config', file, '--graph')
    expect(printed.at(-1)).toMatch(/^%% both\nflowchart TD\n/)
    await run('workflow', 'both', '--config', file, '--dry-run')
    expect(printed.at(-1)).toContain('{{.params.who}}')
    await expect(run('workflow', 'none', '--config', file, '--graph')).rejects.toThrow('it has both')
    await expect(run('workflow', 'both', '--config', file)).rejects.toThrow('one of --dry-run and --graph')
    await expect(run('workflow', 'both', '--config', file, '--dry-run', '--params', '[')).rejects.toThrow('not JSON')
    await run('validate', '--config', file)
    expect(printed.at(-1)).toContain('composite: both')
  })

  it('validates a file and prints a summary', async () => {
    const { run, printed } = program()
    await run('validate', '--config', fileWith({}))
    expect(printed.join('')).toMatch(/is valid\.\nname: +eng\n[\s\S]*one {2}http:\/\/127\.0\.0\.1:1\/mcp {2}unauthenticated/)
  })

  it.each<[string, object, RegExp]>([
    ['an unknown field', { colour: 1 }, /colour is not a known field/],
    ['a part that is not built', { codeMode: {} }, /codeMode is not built/],
    ['a composite tool without steps', { compositeTools: [{ name: 'x', description: 'd' }] }, /compositeTools\[0\]\.steps is required/],
    [
      'a template that uses a step before it is done',
      {
        compositeTools: [
          { ...COMPOSED, steps: [COMPOSED.steps[0], { id: 'second', tool: 'one.b', arguments: { x: '{{.steps.first.output}}' } }] },
        ],
      },
      /: compositeTools\[0\]\.steps\[1\]\.arguments\.x \(step second\): column 3: step first may not be done yet: add it to dependsOn$/,
    ],
    [
      'a cycle of steps, in the words of the webhook',
      {
        compositeTools: [
          {
            ...{ name: 'order', description: 'Orders.' },
            steps: ['ab', 'ba'].map(([id, other]) => ({ id, tool: 'one.a', dependsOn: [other] })),
          },
        ],
      },
      /: the steps wait for each other \(a → b → a\): remove one of these dependsOn entries$/,
    ],
    ['a limit without a bucket', { rateLimiting: {} }, /rateLimiting expects at least one/],
    [
      'a limit per user without users',
      { rateLimiting: { perUser: { maxTokens: 1, refillPeriod: '1s' } } },
      /rateLimiting\.per_?[uU]ser needs/,
    ],
    ['a Redis without an address', { sessionStorage: { provider: 'redis' } }, /sessionStorage expects exactly one of address and sentinel/],
    ['an address that is none', { sessionStorage: { provider: 'redis', address: 'redis://h' } }, /sessionStorage\.address/],
    [
      'policies that do not work',
      { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: ['permit(principal'] } } },
      /incomingAuth\.authz is not usable/,
    ],
    [
      'a missing variable',
      {
        outgoingAuth: {
          source: 'inline',
          default: { type: 'header_injection', headerInjection: { headerName: 'X-A', headerValueEnv: 'GONE' } },
        },
      },
      /headerValueEnv: variable GONE is missing or empty/,
    ],
    [
      'a header that is MCP itself',
      {
        outgoingAuth: {
          source: 'inline',
          default: { type: 'header_injection', headerInjection: { headerName: 'Mcp-Session-Id', headerValue: 'x' } },
        },
      },
      /outgoingAuth\.default\.headerInjection.*Mcp-Session-Id/,
    ],
  ])('rejects %s', async (_, change, expected) => {
    await expect(program().run('validate', '-c', fileWith(change))).rejects.toThrow(expected)
    await expect(program().run('serve', '-c', fileWith(change), '--port', '0')).rejects.toThrow(expected)
  })

  it('connects on demand and prints every name, hidden ones and conflicts too', async () => {
    await using a = await startFixture({ only: ['echo', 'who_am_i', 'hang'] })
    await using b = await startFixture({ only: ['echo'] })
    const backends = [
      { name: 'a', url: a.url },
      { name: 'b', url: b.url },
    ]
    const tools = [{ workload: 'a', exclude: ['hang'] }]
    const aggregation = { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['b'] }, tools }
    const { run, printed } = program()
    await run('validate', '--connect', '--config', fileWith({ backends, aggregation }))
    expect(printed.join('')).toContain('tools:\n  echo  b\n  who_am_i  a\nhidden tools:\n  hang  a\n')
    expect(printed.join('')).toContain('tool echo of a is not offered: b has the name')
    const manual = { ...aggregation, conflictResolution: 'manual', conflictResolutionConfig: {} }
    await expect(program().run('validate', '--connect', '-c', fileWith({ backends, aggregation: manual }))).rejects.toThrow(
      'tool echo of a is not offered: nothing says who gets the name',
    )
    const misspelled = { optimizer: { alwaysListed: ['ecco'] }, operational: { timeouts: { perTool: { who: '1s', hang: '1s' } } } }
    await expect(program().run('validate', '--connect', '-c', fileWith({ backends, aggregation, ...misspelled }))).rejects.toThrow(
      'optimizer.alwaysListed names ecco, which no backend offers; operational.timeouts.perTool names who, which no backend offers',
    )
    await expect(program().run('validate', '--connect', '-c', fileWith({}))).rejects.toThrow('backend one did not answer')
  })

  it.each<[string[], RegExp]>([
    [['serve'], /--config is required/],
    [['serve', '--config', '/none'], /cannot be read/],
    [['serve', '--config', 'x', '--port', '99999'], /from 0 to 65535/],
    [['serve', '--config', 'x', '--session-ttl', '-1s'], /expects a duration/],
    [['serve', '--config', 'x', '--colour'], /unknown option/],
    [['validate', '--config', fileWith({}), '--namespace', 'x'], /--kubeconfig and --namespace are for --connect/],
    [['dance'], /unknown command/],
  ])('rejects the arguments %j', async (args, expected) => {
    await expect(program().run(...args)).rejects.toThrow(expected)
  })

  it('serves until its lifecycle ends, and writes audit events', async () => {
    await using fixture = await startFixture({ only: ['echo'] })
    const { run, printed, lifecycle } = program()
    const logFile = join(folder, 'audit.log')
    const file = fileWith({ backends: [{ name: 'one', url: fixture.url }], audit: { enabled: true, logFile } })
    const running = run('serve', '--config', file, '--port', '0')
    await expect.poll(() => printed.join('')).toMatch(/eng is served at http:\/\/127\.0\.0\.1:\d+\/mcp/)
    const url = /http:\S+/.exec(printed.join(''))?.[0] ?? ''
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize }),
    })
    expect(await answer.json()).toMatchObject({ result: { serverInfo: { name: 'eng' }, protocolVersion: '2025-11-25' } })
    await lifecycle.shutdown('test')
    await running
    const { readFileSync } = await import('node:fs')
    expect(readFileSync(logFile, 'utf8')).toContain('mcp_initialize')
  })
})
