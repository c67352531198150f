import type { Exchange } from '@thv/http/server/exchange'
import { ANONYMOUS } from '@thv/middleware/pipeline/request-context'

/**
 * The party behind a request: the principal, or the client's address without authentication. Clients
 * behind one gateway are then one party.
 */
export function partyOf(principal: string, { remoteAddress }: Exchange): string {
  return principal === ANONYMOUS.principal ? `address ${remoteAddress ?? 'unknown'}` : `principal ${principal}`
}

/** The party is an address, behind which many clients may be. */
export function isAddress(party: string): boolean {
  return party.startsWith('address ')
}
