import type { Hints } from '@thv/authz/access/operation'
import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage } from '@thv/kernel/errors'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { Log } from '@thv/telemetry/log'
import type { Awaitable } from '../pipeline/middleware.ts'
import type { Era, MessageContext, RequestContext } from '../pipeline/request-context.ts'
import type { ToolSource, ToolsRequest } from '../pipeline/tool-source.ts'
import { hintsOf } from './listed-item.ts'

/** The credentials that a list is asked for with, and the key of callers whose credentials get the same list. */
export interface CredentialClass extends Pick<ToolsRequest, 'caller' | 'authorization'> {
  readonly key: string
}

export interface ToolHintsDeps {
  readonly source: ToolSource
  readonly classOf: (context: RequestContext) => CredentialClass
  readonly clock: Clock
  readonly log: Log
}

/** The hints of a tool; `unknown` when the server could not be asked, or does not list the tool. */
export type KnownHints = Hints | undefined | 'unknown'

/** How long a list counts. */
const MAX_AGE_MS = 300_000
/** A tool that is not in the list, a list that differs, or a failure are a reason to ask again, but not more often than this. */
const MIN_AGE_MS = 5_000
/** The same after the server announced a change. */
const MIN_ANNOUNCED_MS = 1_000
/** A client waits for it. */
const LIST_MS = 10_000
const MAX_CLASSES = 1_000

interface KnownList {
  readonly hints: ReadonlyMap<string, Hints | undefined>
  readonly askedAt: number
  /** Something suggests that the server's list is another one by now. */
  isDoubtful: boolean
}

/**
 * The hints that the server itself gives its tools, so that a call is judged as the item in a list is. The server is asked once per era and
 * class of credentials, however many calls wait; what it said is kept for five minutes, and less when a list that passes by says otherwise
 * or the server announces another one.
 */
export class ToolHints {
  readonly #deps: ToolHintsDeps
  /** By class, in the order of their last request. */
  readonly #lists = new Map<string, KnownList>()
  readonly #flight = createSingleFlight<string, KnownList>()
  readonly #closing = new AbortController()
  #changedAt = Number.NEGATIVE_INFINITY

  constructor(deps: ToolHintsDeps) {
    this.#deps = deps
  }

  /** A promise only while the server has to be asked. */
  of(context: MessageContext, name: string): Awaitable<KnownHints> {
    const credentials = this.#deps.classOf(context)
    const key = this.#keyOf(credentials, context.era)
    const known = this.#lists.get(key)
    if (known !== undefined && this.#isGood(known, name)) return found(known, name)
    return this.#flight.run(key, () => this.#ask(key, credentials, context)).then((list) => found(list, name))
  }

  /** A tool of a list on its way to a client. */
  seen(context: RequestContext, name: string, item: JsonObject): void {
    const known = context.era && this.#lists.get(this.#keyOf(this.#deps.classOf(context), context.era))
    if (known === undefined || known.isDoubtful) return
    known.isDoubtful = !known.hints.has(name) || !isSame(known.hints.get(name), hintsOf(item, undefined))
  }

  /** The server has announced another list (`notifications/tools/list_changed`). */
  changed(): void {
    this.#changedAt = this.#deps.clock.monotonic()
  }

  close(): void {
    this.#closing.abort()
  }

  /** Lists of the two eras may differ. */
  #keyOf({ key }: CredentialClass, era: Era): string {
    const own = this.#deps.source.callerKey?.() ?? ''
    return era === 'modern' ? `${key} ${own}` : `${key} ${own} ${era}`
  }

  #isGood({ hints, askedAt, isDoubtful }: KnownList, name: string): boolean {
    const age = this.#deps.clock.monotonic() - askedAt
    if (askedAt <= this.#changedAt) return age < MIN_ANNOUNCED_MS
    return age < MIN_AGE_MS || (age < MAX_AGE_MS && !isDoubtful && hints.has(name))
  }

  async #ask(key: string, { caller, authorization }: CredentialClass, { era }: MessageContext): Promise<KnownList> {
    const { source, clock, log } = this.#deps
    const askedAt = clock.monotonic()
    let hints: KnownList['hints']
    try {
      const limit = { clock, timeoutMs: LIST_MS, what: 'listing the tools', signals: [this.#closing.signal] }
      const tools = await withTimeLimit(limit, (signal) => source.tools({ era, caller, authorization, signal }))
      hints = new Map(tools.flatMap((tool) => (typeof tool['name'] === 'string' ? [[tool['name'], hintsOf(tool, undefined)]] : [])))
    } catch (error) {
      if (!this.#closing.signal.aborted)
        log.warn('the hints of tools are not known; policies that depend on them permit nothing', { error: errorMessage(error) })
      hints = NONE
    }
    const list = { hints, askedAt, isDoubtful: false }
    this.#keep(key, list)
    return list
  }

  #keep(key: string, list: KnownList): void {
    this.#lists.delete(key)
    this.#lists.set(key, list)
    const [oldest] = this.#lists.keys()
    if (this.#lists.size > MAX_CLASSES && oldest !== undefined) this.#lists.delete(oldest)
  }
}

const NONE: ReadonlyMap<string, Hints | undefined> = new Map()

function found({ hints }: KnownList, name: string): KnownHints {
  return hints.has(name) ? hints.get(name) : 'unknown'
}

function isSame(one: Hints | undefined, other: Hints | undefined): boolean {
  return JSON.stringify(one ?? {}) === JSON.stringify(other ?? {})
}
