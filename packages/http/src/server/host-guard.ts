import { isLoopbackHost, parseAuthority } from '../authority.ts'
import type { HeaderMap } from '../header-map.ts'

/**
 * Protection against DNS rebinding and foreign web pages: a page may make a browser send requests here, but Host and Origin tell whose
 * name it used and where it came from.
 */
export interface HostGuardOptions {
  /**
   * The address the server really listens on, not the one it was configured with: something in between may have changed it. On a
   * loopback address only loopback hosts and this address are accepted, unless `allowedHosts` or `ownHosts` say more.
   */
  readonly boundHost: string
  /** The only hosts accepted, without port. Absent and not bound to loopback: any host. */
  readonly allowedHosts?: readonly string[] | undefined
  /** Hosts accepted besides the loopback ones and `boundHost`, without port. Set on any address, everything else is rejected. */
  readonly ownHosts?: readonly string[] | undefined
  /**
   * `https://app.example.com`, `http://localhost:*` (any port), `null` (sandboxed pages) or `*`. Absent: only pages from the host that
   * the request itself names (and, bound to loopback, from any loopback name).
   */
  readonly allowedOrigins?: readonly string[] | undefined
}

export type HostProblem = 'host_missing' | 'host_invalid' | 'host_not_allowed' | 'origin_invalid' | 'origin_not_allowed'

/** Takes the headers as the parser gave them. Several Origin headers come joined and so are invalid; several Hosts are the server's affair. */
export type HostCheck = (headers: HeaderMap) => HostProblem | undefined

/** Throws RangeError on an entry that could never match. */
export function createHostGuard(options: HostGuardOptions): HostCheck {
  const checkHost = hostRule(options)
  const checkOrigin = originRule(options)
  // Nearly all requests of a process carry the same two headers.
  let goodHost: string | undefined
  let goodOrigin: string | undefined
  return ({ host, origin }) => {
    if (Array.isArray(host)) return 'host_invalid'
    if (Array.isArray(origin)) return 'origin_invalid'
    if (host !== undefined && host === goodHost && origin === goodOrigin) return undefined
    const problem = checkHost(host) ?? checkOrigin(origin, host)
    if (problem !== undefined) return problem
    goodHost = host
    goodOrigin = origin
    return undefined
  }
}

function hostRule({ boundHost, allowedHosts, ownHosts }: HostGuardOptions): (host: string | undefined) => HostProblem | undefined {
  const allowed = allowedHosts === undefined ? undefined : new Set(allowedHosts.map(hostEntry))
  const bound = boundHost.toLowerCase()
  const own = new Set([bound.includes(':') && !bound.startsWith('[') ? `[${bound}]` : bound, ...(ownHosts ?? []).map(hostEntry)])
  const closed = ownHosts !== undefined || isLoopbackHost(bound)
  return (host) => {
    if (host === undefined || host === '') return 'host_missing'
    const authority = parseAuthority(host)
    if (authority === undefined) return 'host_invalid'
    if (allowed !== undefined) return allowed.has(authority.host) ? undefined : 'host_not_allowed'
    // An address of 127.0.0.0/8 is no name that somebody else's DNS could have pointed here. A Service of a local platform has one.
    return closed && !isLoopbackHost(authority.host) && !own.has(authority.host) ? 'host_not_allowed' : undefined
  }
}

type OriginRule = (origin: string | undefined, host: string | undefined) => HostProblem | undefined

function originRule({ boundHost, allowedOrigins }: HostGuardOptions): OriginRule {
  const entries = allowedOrigins?.map(originEntry)
  const loopback = isLoopbackHost(boundHost.toLowerCase())
  return (origin, host) => {
    if (origin === undefined) return undefined
    if (entries?.some((entry) => entry === '*')) return undefined
    if (origin === 'null') return entries?.some((entry) => entry === 'null') ? undefined : 'origin_not_allowed'
    const parsed = parseOrigin(origin)
    if (parsed === undefined) return 'origin_invalid'
    if (entries === undefined) {
      const sameHost = host !== undefined && parseAuthority(host)?.host === parsed.host
      return sameHost || (loopback && isLocalName(parsed.host)) ? undefined : 'origin_not_allowed'
    }
    const matches = entries.some((entry) => typeof entry === 'object' && matchesOrigin(entry, parsed))
    return matches ? undefined : 'origin_not_allowed'
  }
}

interface Origin {
  readonly scheme: string
  readonly host: string
  /** Never '': the default of the scheme is filled in. '*' in an allow-list entry only. */
  readonly port: string
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' }

/** RFC 6454 §6.2: scheme://host[:port] and nothing else. */
function parseOrigin(text: string): Origin | undefined {
  const match = /^([a-z][a-z0-9+.-]*):\/\/(.+)$/i.exec(text)
  const scheme = match?.[1]?.toLowerCase()
  const authority = parseAuthority(match?.[2] ?? '')
  if (scheme === undefined || authority === undefined) return undefined
  return { scheme, host: authority.host, port: authority.port || (DEFAULT_PORTS[scheme] ?? '') }
}

function matchesOrigin(entry: Origin, origin: Origin): boolean {
  return entry.scheme === origin.scheme && entry.host === origin.host && (entry.port === '*' || Number(entry.port) === Number(origin.port))
}

function originEntry(text: string): Origin | '*' | 'null' {
  if (text === '*' || text === 'null') return text
  const anyPort = text.endsWith(':*')
  const origin = parseOrigin(anyPort ? text.slice(0, -2) : text)
  if (origin === undefined) throw new RangeError(`"${text}" is not an origin such as https://app.example.com`)
  return anyPort ? { ...origin, port: '*' } : origin
}

function hostEntry(text: string): string {
  const authority = parseAuthority(text)
  if (authority === undefined || authority.port !== '') throw new RangeError(`"${text}" is not a host name without port`)
  return authority.host
}

/** The three names that a page on this machine usually has. A page at another address of 127.0.0.0/8 may belong to somebody else. */
function isLocalName(host: string): boolean {
  return host === 'localhost' || host === '127.0.0.1' || host === '[::1]'
}
