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
  /** Lower-case names. Never changed afterward. */
  readonly headers: Headers
  readonly body?: string | undefined
  readonly purpose?: 'request' | 'stream' | undefined
  /** Ends the request. Without one of them nothing does. */
  readonly signal?: AbortSignal | undefined
  /** Ends the request instead of the signal. */
  readonly cancellation?: Cancellation | undefined
  /** Instead of the endpoint's own URL; of the same origin. */
  readonly url?: URL | undefined
}

/** Where a server is spoken to over HTTP, and the headers that always go there. */
export class HttpEndpoint {
  readonly url: URL
  readonly #target: Target
  readonly #path: string
  readonly #headers: EndpointOptions['headers']
  /** Of the last headers that were given: mostly they are the same object. */
  #given: { readonly headers: Headers; readonly flat: readonly string[] } | undefined
  /** Of the last request, for others with the same objects. */
  #last: { readonly given: Headers; readonly own: Headers; readonly flat: string[] } | undefined

  /** Throws `backend_blocked` for a URL that must not be called. */
  constructor(options: EndpointOptions) {
    const { url, outbound, ca, serverName, policy, headers } = options
    this.#target = outbound.target({ url, ca, serverName, policy })
    this.url = new URL(url)
    this.#path = pathOf(this.url)
    this.#headers = headers
  }

  /** Time limits are the caller's, by its signal: the answer may be a stream that is silent for long. */
  send(request: EndpointRequest, sink: ResponseSink): Promise<void> {
    try {
      const given = typeof this.#headers === 'function' ? this.#headers(request.signal ?? NEVER) : this.#headers
      return given instanceof Promise ? given.then((headers) => this.#send(request, headers, sink)) : this.#send(request, given, sink)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #send(request: EndpointRequest, given: Headers = NONE, sink: ResponseSink): Promise<void> {
    const { method, headers: own, body, purpose, cancellation: signal = request.signal, url } = request
    const headers = this.#last?.given === given && this.#last.own === own ? this.#last.flat : this.#flat(given, own)
    const path = url === undefined ? this.#path : pathOf(url)
    return this.#target.send({ method, path, headers, body, purpose, signal, headersTimeoutMs: 0, bodyTimeoutMs: 0 }, sink)
  }

  #flat(given: Headers, own: Headers): string[] {
    if (this.#given?.headers !== given) this.#given = { headers: given, flat: flatHeaders(given) }
    const all: string[] = []
    const { flat } = this.#given
    for (let i = 0; i < flat.length; i += 2) {
      const name = flat[i] as string
      if (!Object.hasOwn(own, name)) all.push(name, flat[i + 1] as string)
    }
    for (const name in own) all.push(name, own[name] as string)
    this.#last = { given, own, flat: all }
    return all
  }
}

const NONE: Headers = {}
const NEVER = new AbortController().signal

function pathOf({ pathname, search }: URL): string {
  return `${pathname}${search}`
}

/** Lower-case names and values in turn. */
function flatHeaders(given: Headers): string[] {
  const all = new Map<string, string>()
  for (const [name, value] of Object.entries(given)) {
    // The value may be a secret, so only the name is reported.
    if (!isToken(name) || !isHeaderValue(value)) throw new ThvError('usage', `header ${JSON.stringify(name)} is not valid`)
    if (!LEGACY_ONLY_HEADERS.includes(name.toLowerCase())) all.set(name.toLowerCase(), value) // a session is ours to name
  }
  return [...all].flat()
}
