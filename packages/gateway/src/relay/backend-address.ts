import { headerText, type MutableHeaderMap } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'

/** Where the backend's endpoint is, and how requests to it differ from those that clients sent. */
export interface BackendAddress {
  /** Scheme, host and port. */
  readonly origin: string
  readonly remote: boolean
  /** Path and query of the request to the backend. */
  target(exchange: Pick<Exchange, 'query'>): string
  /** The endpoint without anything of a client: for requests of our own. */
  readonly ownTarget: string
  /** Adds what tells the backend about the client's side of the connection. Whatever the client claimed about it is gone already. */
  forwarded(exchange: Pick<Exchange, 'remoteAddress' | 'headers'>, set: MutableHeaderMap): void
}

/** A server of ours: the path stays, and it may know who asked. */
export function localAddress(url: URL, path: string): BackendAddress {
  return {
    origin: url.origin,
    remote: false,
    target: ({ query }) => (query === '' ? path : `${path}?${query}`),
    ownTarget: path,
    forwarded({ remoteAddress, headers }, set) {
      if (remoteAddress !== undefined) set['x-forwarded-for'] = remoteAddress
      const host = headerText(headers['host'])
      if (host !== undefined) set['x-forwarded-host'] = host
      set['x-forwarded-proto'] = 'http'
    },
  }
}

/**
 * A server of somebody else. Its own path, if it has one, stands in for the client's, and its query comes first. It learns the scheme
 * it was called with, so that it does not redirect to another, and neither names nor addresses from in here.
 */
export function remoteAddress(url: string, path: string): BackendAddress {
  const { origin, protocol, pathname, search } = new URL(url)
  // A parsed URL has a path in any case; whether one was written can be seen in the text only.
  const ownPath = /^[^:]+:\/\/[^/?#]*\//.test(url) ? pathname : path
  const ownQuery = search.slice(1)
  const withQuery = (query: string) => (query === '' ? ownPath : `${ownPath}?${query}`)
  return {
    origin,
    remote: true,
    target: ({ query }) => withQuery(ownQuery === '' || query === '' ? ownQuery + query : `${ownQuery}&${query}`),
    ownTarget: withQuery(ownQuery),
    forwarded(_exchange, set) {
      set['x-forwarded-proto'] = protocol.slice(0, -1)
    },
  }
}
