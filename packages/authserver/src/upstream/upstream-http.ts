import { type IncomingProvider, unusable, vetProviderUrl } from '@thv/auth/incoming/incoming-provider'
import { collect } from '@thv/http/outbound/collect'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { isObject } from '@thv/kernel/json'
import { UpstreamRefused } from './upstream-refused.ts'

export interface UpstreamRequest {
  readonly url: string
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly form?: URLSearchParams
  /** Body as JSON, instead of `form`. */
  readonly json?: object
  readonly headers?: readonly string[]
}

/** Asks one provider; every address is vetted, and redirects are not followed. */
export interface UpstreamHttp {
  /** The JSON object of an answer with status 200 or 201. */
  json(request: UpstreamRequest, signal?: AbortSignal): Promise<Readonly<Record<string, unknown>>>
}

export interface UpstreamHttpOptions {
  readonly provider: IncomingProvider
  readonly outbound: Outbound
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

const MAX_BYTES = 256 << 10
const ERROR_CODE = /^[\x21\x23-\x5b\x5d-\x7e]{1,64}$/

export function createUpstreamHttp(options: UpstreamHttpOptions): UpstreamHttp {
  const { provider, outbound, clock, timeoutMs = 10_000 } = options
  const policy = { denyPrivate: true, allowPrivate: provider.allowPrivateIP === true, allowLoopback: provider.allowPrivateIP === true }

  async function send({ url: text, form, json, method = form ? 'POST' : 'GET', headers = [] }: UpstreamRequest, limit: AbortSignal) {
    const url = vetProviderUrl(text, provider)
    const target = outbound.target({ url: url.href, policy })
    const type = form ? ['Content-Type', 'application/x-www-form-urlencoded'] : json ? ['Content-Type', 'application/json'] : []
    return await collect(target, {
      method,
      path: `${url.pathname}${url.search}`,
      headers: ['Accept', 'application/json', 'Accept-Encoding', 'identity', 'User-Agent', 'toolhive', ...type, ...headers],
      body: json === undefined ? form?.toString() : JSON.stringify(json),
      maxResponseBytes: MAX_BYTES,
      signal: limit,
    })
  }

  return {
    async json(request, signal) {
      const signals = signal === undefined ? [options.signal] : [options.signal, signal]
      const place = placeOf(request.url)
      let answer: Awaited<ReturnType<typeof send>>
      try {
        answer = await withTimeLimit({ clock, timeoutMs, what: `the request to ${provider.name}`, signals }, (limit) =>
          send(request, limit),
        )
      } catch (cause) {
        if (isThvError(cause, 'auth_provider_unavailable')) throw cause
        throw unusable(provider, `${place}: ${errorMessage(cause)}`, { cause })
      }
      const { status, headers, body } = answer
      const document = documentOf(body, String(headers['content-type'] ?? ''))
      if (status === 429 || status >= 500) throw unusable(provider, `${place} answered ${status}`, { status })
      const error = document?.['error']
      // Some providers answer 200 with an error.
      if (typeof error === 'string' && ERROR_CODE.test(error)) throw new UpstreamRefused(error)
      if ((status !== 200 && status !== 201) || document === undefined)
        throw unusable(provider, `${place} answered ${status} without a JSON object`, { status })
      return document
    },
  }
}

function documentOf(body: Buffer, type: string): Readonly<Record<string, unknown>> | undefined {
  const text = body.toString('utf8')
  if (type.startsWith('application/x-www-form-urlencoded')) return Object.fromEntries(new URLSearchParams(text))
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined // the caller says so, with the place
  }
}

/** Without the query, which may hold secrets. */
function placeOf(text: string): string {
  const url = URL.parse(text)
  return url === null ? 'an address' : `${url.origin}${url.pathname}`
}

/** The value at a dotted path, such as `authed_user.id`; numbers as texts. */
export function textAt(document: Readonly<Record<string, unknown>>, path: string): string | undefined {
  const value = path.split('.').reduce<unknown>((at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined), document)
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}
