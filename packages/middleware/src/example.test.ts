import { METHODS } from '@thv/mcp/methods'
import { reject } from '@thv/mcp/wire-errors'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTestRunner } from '../../../apps/proxyrunner/src/testing/test-runner.ts'
import { WireClient } from '../../gateway/src/testing/wire-client.ts'
import { type Middleware, setHeader } from './pipeline/middleware.ts'

/*
 * How to write a middleware: one that answers from what it has at hand, and one that has to wait. Both have every step, and run through
 * a real gateway in front of a real MCP server.
 */

let fixture: Fixture

beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(() => fixture.stop())

interface Entry {
  readonly principal: string
  readonly method: string | undefined
  readonly status: number
  readonly outcome: string
}

/** Synchronous: knows its callers by a table, hides a tool, and writes down every exchange. */
function createDoorman(callers: ReadonlyMap<string, string>, journal: Entry[]): Middleware {
  return {
    name: 'doorman',
    withholds: ['authorization'],
    open(context) {
      const principal = callers.get(String(context.exchange.headers['authorization']))
      if (principal === undefined) return reject('invalid_request', { httpStatus: 401, headers: { 'www-authenticate': 'Bearer' } })
      context.caller = { principal }
      return undefined
    },
    message({ outgoing }) {
      const isHidden = outgoing.method === METHODS.toolsCall && outgoing.message.params?.['name'] === 'crash'
      return isHidden ? reject('invalid_params', { detail: 'there is no such tool', inBand: true }) : undefined
    },
    edits: [METHODS.toolsList],
    item: (_context, tool) => (tool['name'] === 'crash' ? undefined : tool),
    headers: (hop, set) => setHeader(set, 'x-caller', hop.caller?.principal ?? 'proxy'),
    streaming: ({ caller }) => void journal.push({ principal: caller.principal, method: 'streaming', status: 200, outcome: 'pending' }),
    end: ({ caller, received, exchange, outcome }) =>
      void journal.push({ principal: caller.principal, method: received?.method, status: exchange.status, outcome }),
  }
}

/** Asynchronous: fetches a token for each caller, once, and again when the backend refuses it. */
function createTokens(fetchToken: (principal: string) => Promise<string>): Middleware & { readonly closed: boolean } {
  const known = new Map<string, string>()
  let closed = false
  return {
    name: 'tokens',
    get closed() {
      return closed
    },
    prepare(hop) {
      if (hop.caller === undefined) return undefined // a probe of the proxy
      const { principal } = hop.caller
      const token = known.get(principal)
      if (token !== undefined) {
        hop.credentials = { authorization: `Bearer ${token}` }
        return undefined // warm: no promise
      }
      return fetchToken(principal).then((fetched) => {
        known.set(principal, fetched)
        hop.credentials = { authorization: `Bearer ${fetched}` }
        return undefined
      })
    },
    credentialsRejected: ({ caller }) => caller !== undefined && known.delete(caller.principal),
    async close() {
      closed = true
    },
  }
}

describe('two middleware in front of an MCP server', () => {
  async function start() {
    const journal: Entry[] = []
    const fetched: string[] = []
    const tokens = createTokens(async (principal) => {
      fetched.push(principal)
      return `token-of-${principal}`
    })
    const middleware = [createDoorman(new Map([['Bearer a', 'ada']]), journal), tokens]
    const runner = await startTestRunner({ backend: fixture.url, middleware })
    await runner.probed()
    const client = new WireClient(runner.url)
    return { runner, client, journal, fetched, [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose]() }
  }
  const ADA = { headers: { authorization: 'Bearer a' } }

  it('the first keeps strangers out before their body is read', async () => {
    await using gate = await start()
    const answer = await gate.client.modernCall('echo')
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(fixture.stats.count('tools/call')).toBe(0)
    await expect.poll(() => gate.journal).toEqual([{ principal: 'anonymous', method: undefined, status: 401, outcome: 'rejected' }])
  })

  it('both see a call; the backend gets the second one’s token in place of the client’s', async () => {
    await using gate = await start()
    for (let i = 0; i < 2; i++) {
      const report = await gate.client.modernCall('report_request', {}, ADA)
      expect(report.text).toContain('Bearer token-of-ada')
      expect(report.text).not.toContain('Bearer a"')
      expect(report.text).toContain('x-caller')
    }
    expect(gate.fetched).toEqual(['ada']) // once; the second call made no promise for it
    const call = { principal: 'ada', method: 'tools/call', status: 200, outcome: 'ok' }
    await expect.poll(() => gate.journal).toEqual([call, call])
  })

  it('the first hides a tool: from the list, and from callers', async () => {
    await using gate = await start()
    const list = await gate.client.modern('tools/list', {}, ADA)
    const names = list.messages[0].result.tools.map(({ name }: { name: string }) => name)
    expect(names).toContain('echo')
    expect(names).not.toContain('crash')
    expect(await gate.client.modernCall('crash', {}, ADA)).toMatchObject({ status: 200, messages: [{ error: { code: -32602 } }] })
    await expect.poll(() => gate.journal.map(({ outcome }) => outcome)).toEqual(['ok', 'rejected'])
  })
})
