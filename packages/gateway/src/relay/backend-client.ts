import { type HeaderMap, headerText, type MutableHeaderMap } from '@thv/http/header-map'
import { forwardedHeaders } from '@thv/http/outbound/forward'
import type { Target } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import type { Clock } from '@thv/kernel/clock'
import { HEADERS } from '@thv/mcp/header-names'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { Caller } from '@thv/middleware/pipeline/request-context'
import { ask, type BackendAnswer, type Question } from './ask.ts'
import type { BackendAddress } from './backend-address.ts'

export interface BackendClientOptions {
  readonly address: BackendAddress
  readonly target: Target
  readonly pipeline: Pipeline
  readonly clock: Clock
}

/** Answers like `/mcp` → `/mcp/` are common and the same for every call: asking once a minute is enough. */
const MOVED_MS = 60_000
const MAX_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308])

/** What identifies requests of the runner's own, such as probes. */
const OWN_HEADERS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

interface Redirectable {
  readonly status: number
  readonly headers: HeaderMap
}

/** The HTTP endpoint behind the proxy: what requests to it look like, and where it is just now. */
export class BackendClient {
  readonly target: Target
  readonly address: BackendAddress
  readonly #pipeline: Pipeline
  readonly #clock: Clock
  /** Where the endpoint redirected to, path only. */
  #moved: { readonly path: string; readonly until: number } | undefined

  constructor({ address, target, pipeline, clock }: BackendClientOptions) {
    this.address = address
    this.target = target
    this.#pipeline = pipeline
    this.#clock = clock
  }

  /** The client's headers as the backend gets them; `set` goes over them, undefined takes one away. */
  headers(exchange: Exchange, caller: Caller, set: MutableHeaderMap): string[] {
    set['accept-encoding'] = 'identity' // what passes through has to be looked at
    this.address.forwarded(exchange, set)
    this.#pipeline.headers(caller, set)
    return forwardedHeaders(exchange.headers, set)
  }

  /** For requests that the runner makes on behalf of a client, in whatever request of it made them necessary. */
  headersOnBehalf(exchange: Exchange, caller: Caller, set: HeaderMap): string[] {
    return this.headers(exchange, caller, {
      ...OWN_HEADERS,
      [HEADERS.lastEventId]: undefined,
      [HEADERS.protocolVersion]: undefined,
      ...set,
    })
  }

  /** For requests that no client asked for. */
  ownHeaders(set: HeaderMap): string[] {
    const headers: MutableHeaderMap = { ...OWN_HEADERS, ...set }
    this.#pipeline.headers({ principal: 'proxyrunner' }, headers)
    return forwardedHeaders({}, headers)
  }

  path(exchange: Exchange): string {
    return this.#current(this.address.target(exchange))
  }

  get ownPath(): string {
    return this.#current(this.address.ownTarget)
  }

  /** Repeats the attempt where the backend redirects to, as long as that is on the same server; gives the last answer. */
  async following<A extends Redirectable | undefined>(path: string, attempt: (path: string) => Promise<A>): Promise<A> {
    let at = path
    for (let redirects = 0; ; redirects++) {
      const answer = await attempt(at)
      const moved = this.movedPath(at, answer, redirects)
      if (moved === undefined) return answer
      at = moved
    }
  }

  /** Where to repeat a request that has been redirected so many times before; undefined: nowhere, the answer counts. */
  movedPath(path: string, answer: Redirectable | undefined, redirects: number): string | undefined {
    if (answer === undefined || !REDIRECTS.has(answer.status) || redirects >= MAX_REDIRECTS) return undefined
    return this.#movedPath(path, answer.headers)
  }

  /** One question with its whole answer; follows redirects. */
  ask(question: Question): Promise<BackendAnswer> {
    return this.following(question.path, (path) => ask(this.target, this.#clock, { ...question, path }))
  }

  #movedPath(path: string, headers: HeaderMap): string | undefined {
    const location = headerText(headers['location'])
    const url = location === undefined ? null : URL.parse(location, this.target.origin + path)
    if (url === null || url.origin !== this.target.origin) return undefined
    this.#moved = { path: url.pathname, until: this.#clock.monotonic() + MOVED_MS }
    return url.pathname + (url.search || queryOf(path))
  }

  #current(path: string): string {
    if (this.#moved === undefined) return path
    if (this.#moved.until > this.#clock.monotonic()) return this.#moved.path + queryOf(path)
    this.#moved = undefined
    return path
  }
}

/** With its question mark. */
function queryOf(path: string): string {
  const at = path.indexOf('?')
  return at < 0 ? '' : path.slice(at)
}
