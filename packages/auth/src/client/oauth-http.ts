import { classifyIp } from '@thv/http/ip-address'
import type { AddressPolicy } from '@thv/http/outbound/address-policy'
import { collect } from '@thv/http/outbound/collect'
import type { Outbound } from '@thv/http/outbound/outbound'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage } from '@thv/kernel/errors'
import { isObject, type UnknownObject } from '@thv/kernel/json'
import { LoginFailed } from './login-failed.ts'

export interface OAuthRequest {
  readonly url: string
  /** A POST with this body; otherwise a GET. */
  readonly body?: URLSearchParams | UnknownObject | undefined
  readonly authorization?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface OAuthResponse {
  readonly status: number
  /** Undefined: the body is not a JSON object. */
  readonly json: UnknownObject | undefined
}

/** Bounded questions to authorization servers and for their documents. Redirects are not followed: a vetted address stays the one that is asked. */
export interface OAuthHttp {
  /** Throws LoginFailed when there is no answer, or when the address must not be called. */
  send(request: OAuthRequest): Promise<OAuthResponse>
}

export interface OAuthHttpOptions {
  readonly outbound: Outbound
  /** Addresses of this machine, also over plain http. */
  readonly allowLoopback: boolean
  readonly clock?: Clock | undefined
  readonly timeoutMs?: number | undefined
}

const MAX_DOCUMENT_BYTES = 256 << 10

export function createOAuthHttp({ outbound, allowLoopback, clock = systemClock, timeoutMs = 15_000 }: OAuthHttpOptions): OAuthHttp {
  const policy: AddressPolicy = { allowLoopback }
  return {
    async send({ url: address, body, authorization, signal }) {
      const url = vettedUrl(address, allowLoopback)
      const headers = ['Accept', 'application/json', 'Accept-Encoding', 'identity']
      if (authorization !== undefined) headers.push('Authorization', authorization)
      if (body !== undefined) headers.push('Content-Type', body instanceof URLSearchParams ? FORM : 'application/json')
      try {
        const { status, body: bytes } = await withTimeLimit({ clock, timeoutMs, what: 'the request', signals: [signal] }, (limit) =>
          collect(outbound.target({ url: url.href, policy }), {
            method: body === undefined ? 'GET' : 'POST',
            path: `${url.pathname}${url.search}`,
            headers,
            body: body instanceof URLSearchParams ? body.toString() : body && JSON.stringify(body),
            maxResponseBytes: MAX_DOCUMENT_BYTES,
            signal: limit,
          }),
        )
        return { status, json: jsonObject(bytes) }
      } catch (error) {
        if (signal?.aborted) throw error
        // Without the query, which may hold secrets.
        throw new LoginFailed(`${url.origin}${url.pathname}: ${errorMessage(error)}`, { cause: error })
      }
    },
  }
}

const FORM = 'application/x-www-form-urlencoded'

/** Codes, tokens and secrets go to such an address, so it is https unless it is this machine. */
export function vettedUrl(text: string, allowLoopback: boolean): URL {
  const url = URL.parse(text)
  if (url === null) throw new LoginFailed(`${JSON.stringify(text.slice(0, 200))} is not a URL`)
  if (url.username !== '' || url.password !== '') throw new LoginFailed(`the URL at ${url.host} carries a user name or password`)
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url) && allowLoopback)) return url
  throw new LoginFailed(`${url.protocol}//${url.host} is not https`)
}

/** This machine, whichever of its loopback addresses: servers of the local platform have their own. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || classifyIp(hostname.replace(/^\[|\]$/g, '')) === 'loopback'
}

function jsonObject(bytes: Buffer): UnknownObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined // the caller names what is missing
  }
}

/** The strings of a list; undefined where there is no list. */
export function stringsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined
}

export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
