import type { Exchange } from '@thv/http/server/exchange'
import { parseText } from '@thv/mcp/parse-body'
import type { RequestContext } from '../pipeline/request-context.ts'

/** A context for links, which never look at the exchange. */
export function testContext(message: object | string, overrides: Partial<RequestContext> = {}): RequestContext {
  const received = parseText(typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }))
  if (received.kind === 'invalid') throw new TypeError(`not a message: ${received.detail}`)
  const exchange = Object.freeze({}) as unknown as Exchange
  return { exchange, era: 'legacy', received, outgoing: received, sessionId: undefined, principal: 'anonymous', ...overrides }
}
