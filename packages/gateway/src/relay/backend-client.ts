import { type HeaderMap, headerText, type MutableHeaderMap } from '@thv/http/header-map'
import { forwardedHeaders } from '@thv/http/outbound/forward'
import type { Target } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import type { Clock } from '@thv/kernel/clock'
import { HEADERS } from '@thv/mcp/header-names'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { BackendInfo, Caller, Hop } from '@thv/middleware/pipeline/request-context'
import { ask, type BackendAnswer, type Question } from './ask.ts'
import type { BackendAddress } from './backend-address.ts'
import { prepareHop } from './prepare-hop.ts'

export interface BackendClientOptions {
  readonly address: BackendAddress
  readonly target: Target
  readonly pipeline: Pipeline
  readonly clock: Clock
  /** The backend as middleware see it in requests of our own. */
  readonly info: BackendInfo
}

/** One request whose whole answer is needed before anything else can be done. */
export interface BackendQuestion extends Omit<Question, 'headers'> {
  /** Headers to set; undefined removes one of the client's. */
  readonly set?: HeaderMap
  /** The proxy asks by itself, in the place of the client: it sends its own `Accept` and protocol headers. */
  readonly isOwn?: boolean
}

/** Answers like `/mcp` → `/mcp/` are common and the same for every call: asking once a minute is enough. */
const MOVED_MS = 60_000
const MAX_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308])

/** Headers of requests that the proxy makes by itself. */
const OWN_HEADERS: HeaderMap = {
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
  [HEADERS.lastEventId]: undefined,
  [HEADERS.protocolVersion]: undefined,
}

const NO_HEADERS: HeaderMap = {}

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
  readonly #info: BackendInfo
  /** Where the endpoint redirected to, path only. */
  #moved: { readonly path: string; readonly until: number } | undefined

  constructor({ address, target, pipeline, clock, info }: BackendClientOptions) {
    this.address = address
    this.target = target
    this.#pipeline = pipeline
    this.#clock = clock
    this.#info = info
  }

  /** Runs `prepare` for a hop. Throws RejectedError; a promise only where a middleware waits. */
  prepare(hop: Hop): Promise<void> | undefined {
    return prepareHop(this.#pipeline, hop)
  }

  /** After a 401 of the backend: true when there are new credentials for one more attempt. Throws RejectedError. */
  async renewCredentials(hop: Hop): Promise<boolean> {
    if (hop.credentials === undefined || !this.#pipeline.credentialsRejected(hop)) return false
    hop.credentials = undefined
    await this.prepare(hop)
    return true
  }

  /**
   * A request that no client asked for. It carries static credentials only, and goes out without them where there are none. With a caller
   * it carries those of the caller, and throws RejectedError where there are none.
   */
  async ownHop(caller?: Caller): Promise<Hop> {
    const hop: Hop = {
      caller,
      backend: this.#info,
      exchange: undefined,
      era: undefined,
      outgoing: undefined,
      credentials: undefined,
      trace: undefined,
    }
    if (caller === undefined) await this.#pipeline.prepare(hop)
    else await this.prepare(hop)
    return hop
  }

  /** The headers of a hop: those of its client, with `set` and the pipeline's over them. Undefined in `set` removes one. */
  headers(hop: Hop, set: MutableHeaderMap): string[] {
    const { exchange } = hop
    if (exchange !== undefined) {
      set['accept-encoding'] = 'identity' // what passes through has to be looked at
      this.address.forwarded(exchange, set)
    }
    this.#pipeline.headers(hop, set)
    return forwardedHeaders(exchange?.headers ?? NO_HEADERS, set)
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

  /** One question with its whole answer; follows redirects, and asks again with new credentials after a 401 to the old ones. */
  async ask(hop: Hop, question: BackendQuestion): Promise<BackendAnswer> {
    const answer = await this.#ask(hop, question)
    return answer.status === 401 && (await this.renewCredentials(hop)) ? await this.#ask(hop, question) : answer
  }

  #ask(hop: Hop, { set, isOwn = false, ...question }: BackendQuestion): Promise<BackendAnswer> {
    const headers = this.headers(hop, isOwn ? { ...OWN_HEADERS, ...set } : { ...set })
    return this.following(question.path, (path) => ask(this.target, this.#clock, { ...question, headers, path }))
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
