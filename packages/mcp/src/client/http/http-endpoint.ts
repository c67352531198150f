import type { Cancellation } from '@thv/http/cancellation'
import { isHeaderValue, isToken } from '@thv/http/header-map'
import type { AddressPolicy } from '@thv/http/outbound/address-policy'
import type { CaBundle } from '@thv/http/outbound/ca-bundle'
import type { Outbound, Target } from '@thv/http/outbound/outbound'
import type { ResponseSink } from '@thv/http/outbound/outbound-call'
import { ThvError } from '@thv/kernel/errors'
import { LEGACY_ONLY_HEADERS } from '../../header-names.ts'

export type Headers = Readonly<Record<string, string>>

export interface EndpointOptions {
  readonly url: string
  readonly outbound: Outbound
  readonly ca?: CaBundle | undefined
  readonly serverName?: string | undefined
  readonly policy?: AddressPolicy | undefined
  /** On every HTTP request; called each time where it is a function, as tokens expire. The headers of MCP cannot be replaced. */
  readonly headers?: Headers | ((signal: AbortSignal) => Headers | Promise<Headers>) | undefined
}

export interface EndpointRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Lower-case names. */
  readonly headers: Headers
  readonly body?: string | undefined
  readonly purpose?: 'request' | 'stream' | undefined
  readonly signal: AbortSignal
  /** Ends the request instead of the signal. */
  readonly cancellation?: Cancellation | undefined
  /** Instead of the endpoint's own URL; of the same origin. */
  readonly url?: URL | undefined
}

/** Where a server is spoken to over HTTP, and the headers that always go there. */
export class HttpEndpoint {
  readonly url: URL
  readonly #target: Target
  readonly #headers: EndpointOptions['headers']

  /** Throws `backend_blocked` for a URL that must not be called. */
  constructor(options: EndpointOptions) {
    const { url, outbound, ca, serverName, policy, headers } = options
    this.#target = outbound.target({ url, ca, serverName, policy })
    this.url = new URL(url)
    this.#headers = headers
  }

  /** Time limits are the caller's, by its signal: the answer may be a stream that is silent for long. */
  async send(request: EndpointRequest, sink: ResponseSink): Promise<void> {
    const { method, body, purpose, signal, cancellation = signal, url = this.url } = request
    const given = typeof this.#headers === 'function' ? this.#headers(signal) : this.#headers
    const headers = flatHeaders(given instanceof Promise ? await given : given, request.headers)
    const limits = { headersTimeoutMs: 0, bodyTimeoutMs: 0 }
    await this.#target.send({ method, path: `${url.pathname}${url.search}`, headers, body, purpose, signal: cancellation, ...limits }, sink)
  }
}

function flatHeaders(given: Headers = {}, own: Headers): string[] {
  const all = new Map<string, string>()
  for (const [name, value] of Object.entries(given)) {
    // The value may be a secret, so only the name is reported.
    if (!isToken(name) || !isHeaderValue(value)) throw new ThvError('usage', `header ${JSON.stringify(name)} is not valid`)
    if (!LEGACY_ONLY_HEADERS.includes(name.toLowerCase())) all.set(name.toLowerCase(), value) // a session is ours to name
  }
  for (const [name, value] of Object.entries(own)) all.set(name, value)
  return [...all].flat()
}
