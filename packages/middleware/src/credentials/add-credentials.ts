import type { MutableHeaderMap } from '@thv/http/header-map'
import type { Hop } from '../pipeline/request-context.ts'

/** Adds to the credentials of a hop. `headers` is shared by all hops and never changed. */
export function addCredentials(hop: Hop, headers: MutableHeaderMap): void {
  hop.credentials = hop.credentials === undefined ? headers : { ...headers, ...hop.credentials }
}
