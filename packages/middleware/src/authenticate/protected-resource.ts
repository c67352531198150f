import { parseAuthority } from '@thv/http/authority'
import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'

/** This server as an OAuth protected resource (RFC 9728), for metadata and challenges. */
export interface ProtectedResource {
  /** The address as the user configured it. Absent: the address that a request came to. */
  readonly url?: string | undefined
  /** Empty where clients cannot get tokens by OAuth, as with those of service accounts. */
  readonly authorizationServers: readonly string[]
  readonly scopes: readonly string[]
  /** Believe `X-Forwarded-Host`, `-Proto` and `-Prefix`. */
  readonly trustProxyHeaders?: boolean | undefined
  /** Path that a proxy in front of this one cuts off. */
  readonly endpointPrefix?: string | undefined
}

/** The metadata of `https://host/path` is at `https://host/.well-known/oauth-protected-resource/path`. */
export const METADATA_PATH = '/.well-known/oauth-protected-resource'

/**
 * The address of the resource at `path`, as the client of this request knows it. Undefined: the request names no usable host.
 * Clients reject metadata of any other address than the one they called.
 */
export function resourceAddress(resource: ProtectedResource, exchange: Exchange, path: string): string | undefined {
  if (resource.url !== undefined) return resource.url
  const origin = originOf(resource, exchange)
  return origin === undefined ? undefined : `${origin}${prefixOf(resource, exchange)}${path === '/' ? '' : path}`
}

/** Where the metadata of the resource at `path` is found. */
export function metadataAddress(resource: ProtectedResource, exchange: Exchange, path: string): string | undefined {
  const address = resourceAddress(resource, exchange, path)
  const url = address === undefined ? null : URL.parse(address)
  return url === null ? undefined : `${url.origin}${METADATA_PATH}${url.pathname === '/' ? '' : url.pathname}${url.search}`
}

function originOf({ trustProxyHeaders }: ProtectedResource, { headers }: Exchange): string | undefined {
  const forwarded = trustProxyHeaders === true ? hostOf(firstOf(headers['x-forwarded-host'])) : undefined
  const host = forwarded ?? hostOf(headerText(headers['host']))
  if (host === undefined) return undefined
  const scheme = trustProxyHeaders === true ? firstOf(headers['x-forwarded-proto'])?.toLowerCase() : undefined
  return `${scheme === 'https' ? 'https' : 'http'}://${host}`
}

function prefixOf({ trustProxyHeaders, endpointPrefix = '' }: ProtectedResource, { headers }: Exchange): string {
  const forwarded = trustProxyHeaders === true ? firstOf(headers['x-forwarded-prefix']) : undefined
  const prefix = (endpointPrefix !== '' ? endpointPrefix : (forwarded ?? '')).replace(/\/+$/, '')
  return /^(?:\/[\w.~%-]+)+$/.test(prefix) ? prefix : ''
}

function hostOf(text: string | undefined): string | undefined {
  const authority = text === undefined ? undefined : parseAuthority(text)
  if (authority === undefined) return undefined
  return authority.port === '' ? authority.host : `${authority.host}:${authority.port}`
}

/** Of several proxies the first one spoke to the client. */
function firstOf(value: string | string[] | undefined): string | undefined {
  return headerText(value)?.split(',', 1)[0]?.trim()
}
