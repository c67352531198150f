import type { AddressPolicy } from '@thv/http/outbound/address-policy'
import { ThvError } from '@thv/kernel/errors'
import type { VerificationKey } from './jwks.ts'

/** Somebody whose tokens are taken. */
export interface IncomingProvider {
  /** For logs and for identities. */
  readonly name: string
  /** The exact value of `iss`; discovery starts from it. */
  readonly issuer: string
  /** One of `aud` must be this. Undefined takes tokens that were made for anybody. */
  readonly audience?: string | undefined
  /** The issuer is the one that the discovery document at `issuer` names, whatever that is called: for the API server of a cluster. */
  readonly discoversIssuer?: boolean | undefined
  /** `sub` must be this. With `*` at its end: what it must begin with. */
  readonly requiredSubject?: string | undefined
  /** Instead of discovery. */
  readonly jwksUrl?: string | undefined
  /** Its keys, where it is this program itself: nothing is fetched. */
  readonly localKeys?: LocalKeys | undefined
  /** For tokens that are no JWT; without it they are rejected. */
  readonly introspection?: IntrospectionEndpoint | undefined
  /** PEM file, beside the roots of the system. */
  readonly caCertPath?: string | undefined
  /** File with a bearer for discovery and keys, such as a service account's. */
  readonly authTokenFile?: string | undefined
  /** Private and loopback addresses may be called. Metadata services and link-local ones never are. */
  readonly allowPrivateIP?: boolean | undefined
  /** The keys may be at a private or loopback address, whatever holds for the rest. */
  readonly jwksAllowPrivateIP?: boolean | undefined
  /** Plain http also to hosts that are not loopback. */
  readonly allowHttp?: boolean | undefined
}

/** Keys that are known without a network. */
export type LocalKeys = (header: { alg: string; kid?: string | undefined }) => readonly VerificationKey[]

export interface IntrospectionEndpoint {
  readonly url: string
  readonly clientId?: string | undefined
  readonly clientSecret?: string | undefined
  /** Instead of `clientSecret`; read again for every question, so that a rotated secret needs no restart. */
  readonly clientSecretFile?: string | undefined
}

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])
const API_SERVER_HOST = /^kubernetes(\.default(\.svc(\..+)?)?)?$/

/** Throws when a provider's address must not be called: keys that come over plain http may come from anybody. */
export function vetProviderUrl(text: string, provider: IncomingProvider): URL {
  const url = URL.parse(text)
  if (url === null) throw unusable(provider, 'one of its addresses is not a URL')
  if (url.username !== '' || url.password !== '') throw unusable(provider, `the address of ${url.host} carries a user name or password`)
  if (url.protocol === 'https:') return url
  if (url.protocol === 'http:' && (provider.allowHttp === true || isThisMachine(url))) return url
  throw unusable(provider, `${url.protocol}//${url.host} is not https`)
}

/** Plain http may be used with it. */
export function isThisMachine(url: URL): boolean {
  return LOOPBACK_HOSTS.has(url.hostname)
}

/**
 * Undefined: everything may be called. Only so can the API server of the own cluster be a provider, whose name the policy forbids
 * to all others; it takes `allowPrivateIP`, and the name must stand in the configuration, not just in a provider's document.
 */
export function addressPolicyFor(url: URL, provider: IncomingProvider, purpose?: 'keys'): AddressPolicy | undefined {
  const allowsPrivate = provider.allowPrivateIP === true || (purpose === 'keys' && provider.jwksAllowPrivateIP === true)
  if (!allowsPrivate) return { denyPrivate: true }
  const isApiServer = provider.discoversIssuer === true || API_SERVER_HOST.test(url.hostname)
  if (isApiServer && configuredHosts(provider).includes(url.hostname)) return undefined
  return { denyPrivate: true, allowPrivate: true, allowLoopback: true }
}

function configuredHosts({ issuer, jwksUrl, introspection }: IncomingProvider): (string | undefined)[] {
  return [issuer, jwksUrl, introspection?.url].map((text) => (text === undefined ? undefined : URL.parse(text)?.hostname))
}

/** `status`: what it answered instead of 200. */
export function unusable(
  { name }: IncomingProvider,
  problem: string,
  { cause, ...details }: { cause?: unknown; status?: number; timedOut?: boolean } = {},
): ThvError {
  const options = { ...(cause !== undefined && { cause }), details }
  return new ThvError('auth_provider_unavailable', `identity provider ${name}: ${problem}`, options)
}
