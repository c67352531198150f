import type { Exchange } from '@thv/http/server/exchange'
import type { ParsedMessage } from '@thv/mcp/parse-body'

/** Whoever stands behind a request. Sessions are bound to it. Everybody is `anonymous` until there is authentication. */
export interface Caller {
  readonly principal: string
}

/** One POST on its way through: read once, parsed once, shared by every link and by the upstream. */
export interface RequestContext extends Caller {
  readonly exchange: Exchange
  readonly era: 'legacy' | 'modern'
  /** What the client sent. */
  readonly received: ParsedMessage
  /** What the backend gets: the same object, unless a link replaced it. */
  outgoing: ParsedMessage
  /** The legacy session that the client named, in its header or (HTTP+SSE) in the query. Undefined on modern requests, whatever they carry. */
  readonly sessionId: string | undefined
}
