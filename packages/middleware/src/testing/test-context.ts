import type { Exchange } from '@thv/http/server/exchange'
import { parseText } from '@thv/mcp/parse-body'
import { ANONYMOUS, type Hop, type MessageContext } from '../pipeline/request-context.ts'

/** The context of a POSTed message, for middleware that never look at the exchange. */
export function testContext(message: object | string, overrides: Partial<MessageContext> = {}): MessageContext {
  const received = parseText(typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }))
  if (received.kind === 'invalid') throw new TypeError(`not a message: ${received.detail}`)
  return {
    exchange: Object.freeze({}) as unknown as Exchange,
    route: '/mcp',
    backend: { name: 'test', transport: 'streamable-http' },
    caller: ANONYMOUS,
    era: 'legacy',
    received,
    outgoing: received,
    sessionId: undefined,
    lastEventId: undefined,
    credentials: undefined,
    authz: undefined,
    rateLimit: undefined,
    endStream: undefined,
    streamTimer: undefined,
    trace: undefined,
    outcome: 'pending',
    rejection: undefined,
    failure: undefined,
    answer: undefined,
    isStream: false,
    ...overrides,
  }
}

/** A request of our own to a backend. */
export function testHop(overrides: Partial<Hop> = {}): Hop {
  const backend = { name: 'test', transport: 'streamable-http' }
  return {
    caller: undefined,
    backend,
    exchange: undefined,
    era: undefined,
    outgoing: undefined,
    credentials: undefined,
    trace: undefined,
    ...overrides,
  }
}
