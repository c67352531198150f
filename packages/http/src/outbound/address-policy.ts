import { parseAuthority } from '../authority.ts'
import { classifyIp, type IpClass, parseIp } from '../ip-address.ts'

/** Which remote addresses may be called. Used on the text of a URL before it is stored, and on every resolved address at connect time. */
export interface AddressPolicy {
  /** This machine: never by accident, so only when set. */
  readonly allowLoopback?: boolean
  /** Refuse private ranges and cluster-internal names. */
  readonly denyPrivate?: boolean
  /** The exception to `denyPrivate`. */
  readonly allowPrivate?: boolean
  /**
   * Addresses of the Kubernetes API server, which is never a remote server: `ADDRESS`, `NAME`, or either with `:PORT`, an IPv6 address
   * then in brackets. See `apiServerAddresses`.
   */
  readonly blockedAddresses?: readonly string[]
}

export type AddressProblem =
  | 'url_invalid'
  | 'scheme_not_allowed'
  | 'credentials_in_url'
  | 'host_blocked'
  | 'address_blocked'
  | 'loopback_blocked'
  | 'private_blocked'

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly problem: AddressProblem; readonly message: string }

const OK: Verdict = { ok: true }

/** Names that answer every request with credentials. Each also stands for the names below it. */
const METADATA_HOSTS = [
  'metadata.google.internal',
  'metadata.goog',
  'metadata',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.tencentyun.com',
]
/** The Kubernetes API server from inside the cluster; with any cluster domain behind. */
const API_SERVER_HOST = /(^|\.)kubernetes\.default($|\.)/
const CLUSTER_DOMAIN = 'cluster.local'

/**
 * Textual, without DNS. The message says what is wrong and is meant for the person who wrote the URL. Without a policy only what could
 * not be called at all is refused.
 */
export function vetUrl(text: string, policy: AddressPolicy | undefined): Verdict {
  const url = URL.parse(text)
  if (url === null) return refuse('url_invalid', 'not a URL')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return refuse('scheme_not_allowed', `scheme ${url.protocol.slice(0, -1)} is not allowed, only http and https are`)
  if (url.username !== '' || url.password !== '')
    return refuse('credentials_in_url', 'a URL must not carry a user name or password: put them into a Secret')
  return policy === undefined ? OK : vetHost(url.hostname, policy, portOf(url))
}

/**
 * A host as the WHATWG URL parser spells it: it turns 0x7f.1, 017700000001 and full-width digits into dotted decimals. Without a port
 * any may be meant.
 */
export function vetHost(hostname: string, policy: AddressPolicy, port?: number): Verdict {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  if (host === '') return refuse('url_invalid', 'the URL has no host')
  const address = host.startsWith('[') ? host.slice(1, -1) : host
  if (parseIp(address) !== undefined) return vetAddress(address, policy, port)
  if (API_SERVER_HOST.test(host) || host === 'kubernetes' || isBlocked(host, policy, port))
    return refuse('host_blocked', `${host} is the Kubernetes API server, which is never a remote server`)
  if (METADATA_HOSTS.some((name) => isWithin(host, name)))
    return refuse('host_blocked', `${host} is the metadata service of a cloud, which is never a remote server`)
  if (isWithin(host, 'localhost') && policy.allowLoopback !== true) return refuse('loopback_blocked', `${host} is a loopback address`)
  if (isWithin(host, CLUSTER_DOMAIN) && deniesPrivate(policy))
    return refuse('private_blocked', `${host} is inside the cluster, and private addresses are not allowed`)
  return OK
}

/** One resolved address, or one spelled out in a URL. */
export function vetAddress(address: string, policy: AddressPolicy, port?: number): Verdict {
  const is = classifyIp(address)
  if (is === undefined) return refuse('address_blocked', `${address} is not an IP address`)
  if (isBlocked(address, policy, port))
    return refuse('address_blocked', `${address} is an address of the Kubernetes API server, which is never a remote server`)
  if (ALWAYS_BLOCKED.has(is)) return refuse('address_blocked', `${address} is ${DESCRIPTION[is]}, which is never a remote server`)
  if (is === 'loopback' && policy.allowLoopback !== true) return refuse('loopback_blocked', `${address} is a loopback address`)
  if (is === 'private' && deniesPrivate(policy))
    return refuse('private_blocked', `${address} is a private address, and these are not allowed`)
  return OK
}

/**
 * An address of a cluster name, from the platform itself. Where pods live on loopback, their addresses are what private ones are in a
 * cluster; anything else is vetted as ever, since any author of a Service chooses it.
 */
export function vetVouchedAddress(address: string, policy: AddressPolicy, port?: number): Verdict {
  if (classifyIp(address) !== 'loopback') return vetAddress(address, policy, port)
  if (deniesPrivate(policy)) return refuse('private_blocked', `${address} is inside the cluster, and private addresses are not allowed`)
  return vetAddress(address, { ...policy, allowLoopback: true }, port)
}

const ALWAYS_BLOCKED: ReadonlySet<IpClass> = new Set(['unspecified', 'link-local', 'metadata', 'multicast'])

const DESCRIPTION: Readonly<Record<IpClass, string>> = {
  unspecified: 'an unspecified address',
  loopback: 'a loopback address',
  'link-local': 'a link-local address',
  metadata: 'the metadata service of a cloud',
  multicast: 'a multicast address',
  private: 'a private address',
  public: 'a public address',
}

function deniesPrivate(policy: AddressPolicy): boolean {
  return policy.denyPrivate === true && policy.allowPrivate !== true
}

/** Equal, or a name below it. */
function isWithin(host: string, name: string): boolean {
  return host === name || host.endsWith(`.${name}`)
}

function isBlocked(host: string, { blockedAddresses = [] }: AddressPolicy, port: number | undefined): boolean {
  return blockedAddresses.some((entry) => {
    if (parseIp(entry) !== undefined) return sameAddress(entry, host)
    const blocked = parseAuthority(entry)
    if (blocked === undefined) return false
    if (blocked.port !== '' && port !== undefined && Number(blocked.port) !== port) return false
    return blocked.host === host || sameAddress(blocked.host.replace(/^\[|\]$/g, ''), host)
  })
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

/** By value, since one address has many spellings; a mapped IPv4 address is the address it maps. */
function sameAddress(a: string, b: string): boolean {
  const left = unmapped(a)
  return left !== undefined && left === unmapped(b)
}

function unmapped(text: string): string | undefined {
  const bytes = parseIp(text)
  if (bytes === undefined) return undefined
  const mapped = bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff
  return (mapped ? bytes.slice(12) : bytes).join('.')
}

function refuse(problem: AddressProblem, message: string): Verdict {
  return { ok: false, problem, message }
}
