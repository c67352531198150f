import type { Exchange } from '@thv/http/server/exchange'
import { ANONYMOUS } from '@thv/middleware/pipeline/request-context'

/**
 * Who is behind a request, as far as that can be told: the principal, or the client's address where nobody is authenticated. Clients
 * behind one gateway are then one party.
 */
export function partyOf(principal: string, { remoteAddress }: Exchange): string {
  return principal === ANONYMOUS.principal ? `address ${remoteAddress ?? 'unknown'}` : `principal ${principal}`
}
