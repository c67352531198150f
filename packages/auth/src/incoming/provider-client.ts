import { readFile, stat } from 'node:fs/promises'
import { type CaBundle, parseCaBundle } from '@thv/http/outbound/ca-bundle'
import { type CollectedResponse, collect } from '@thv/http/outbound/collect'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { addressPolicyFor, type IncomingProvider, unusable, vetProviderUrl } from './incoming-provider.ts'

export interface ProviderRequest {
  readonly url: string
  readonly maxBytes: number
  /** A POST with a form; otherwise a GET. */
  readonly form?: URLSearchParams
  readonly authorization?: string | undefined
  readonly purpose?: 'keys'
}

export interface JsonAnswer {
  readonly json: { readonly [name: string]: unknown }
  readonly cacheControl: string
}

/** Asks one provider. Whatever goes wrong, also an answer that is no 200 with a JSON object, is `auth_provider_unavailable`. */
export interface ProviderClient {
  json(request: ProviderRequest): Promise<JsonAnswer>
  /** Trimmed, read again each time; none is kept in memory. */
  secretFile(path: string): Promise<string>
}

export interface ProviderClientOptions {
  readonly provider: IncomingProvider
  /** Without a policy of its own. */
  readonly outbound: Outbound
  readonly clock: Clock
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const MAX_FILE_BYTES = 1 << 20

export function createProviderClient(options: ProviderClientOptions): ProviderClient {
  const { provider, outbound, clock, timeoutMs, signal } = options
  let ca: { pem: string; bundle: CaBundle } | undefined

  /** The same bundle as long as the file says the same, since a new one means new connections. */
  async function caBundle(path: string): Promise<CaBundle> {
    const pem = await fileText(path)
    if (ca?.pem !== pem) ca = { pem, bundle: parseCaBundle(pem, { name: path, now: clock.now() }) }
    return ca.bundle
  }

  async function exchange(request: ProviderRequest, limit: AbortSignal): Promise<CollectedResponse> {
    const url = vetProviderUrl(request.url, provider)
    const bundle = provider.caCertPath === undefined ? undefined : await caBundle(provider.caCertPath)
    const target = outbound.target({ url: url.href, ca: bundle, policy: addressPolicyFor(url, provider, request.purpose) })
    // A Kubernetes API server answers 406 for its keys unless their own type (RFC 7517) is accepted.
    const headers = ['Accept', 'application/json, application/jwk-set+json', 'Accept-Encoding', 'identity']
    if (request.authorization !== undefined) headers.push('Authorization', request.authorization)
    if (request.form) headers.push('Content-Type', 'application/x-www-form-urlencoded')
    return await collect(target, {
      method: request.form ? 'POST' : 'GET',
      path: `${url.pathname}${url.search}`,
      headers,
      body: request.form?.toString(),
      maxResponseBytes: request.maxBytes,
      signal: limit,
    })
  }

  return {
    async json(request) {
      const limit = new AbortController()
      const stop = () => limit.abort(signal.reason)
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      const timer = clock.setTimer(timeoutMs, () => limit.abort(unusable(provider, `no answer within ${timeoutMs} ms`, { timedOut: true })))
      const place = placeOf(request.url)
      try {
        // Redirects are not followed: an address that was vetted must not become another one.
        const { status, headers, body } = await exchange(request, limit.signal)
        if (status !== 200) throw unusable(provider, `${place} answered ${status}`, { status })
        const json = jsonObject(body)
        if (json === undefined) throw unusable(provider, `${place} did not answer with a JSON object`, { status })
        return { json, cacheControl: String(headers['cache-control'] ?? '') }
      } catch (error) {
        throw asUnusable(error, (cause) => unusable(provider, `${place}: ${errorMessage(cause)}${allowHint(cause)}`, { cause }))
      } finally {
        timer.cancel()
        signal.removeEventListener('abort', stop)
      }
    },
    async secretFile(path) {
      try {
        return (await fileText(path)).trim()
      } catch (error) {
        throw unusable(provider, `${path} cannot be read`, { cause: error })
      }
    },
  }
}

async function fileText(path: string): Promise<string> {
  const place = mountedPath(path)
  const { size } = await stat(place)
  if (size > MAX_FILE_BYTES) throw new RangeError(`${path} is larger than ${MAX_FILE_BYTES} bytes`)
  return await readFile(place, 'utf8')
}

function jsonObject(body: Buffer): { readonly [name: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as { [name: string]: unknown }) : undefined
  } catch {
    return undefined // the caller says so, with the place
  }
}

/** That an address could be allowed, if it could. */
function allowHint(error: unknown): string {
  return isThvError(error, 'backend_blocked') && /private|loopback/.test(error.message) ? ' (allowPrivateIP is off)' : ''
}

/** Without the query, which may hold secrets. */
function placeOf(text: string): string {
  const url = URL.parse(text)
  return url === null ? 'an address' : `${url.origin}${url.pathname}`
}

function asUnusable(error: unknown, wrap: (cause: unknown) => Error): unknown {
  return error instanceof Error && 'code' in error && error.code === 'auth_provider_unavailable' ? error : wrap(error)
}
