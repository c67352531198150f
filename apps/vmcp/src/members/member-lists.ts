import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { jsonEqual } from '@thv/kernel/json'
import type { Listening } from '@thv/mcp/client/mcp-client'
import { isObject, type JsonObject, type JsonRpcNotification } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { Log } from '@thv/telemetry/log'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { failureText } from './failure-text.ts'
import { boundedTtl, REST_FACTOR } from './list-pages.ts'
import { LIST_KINDS, type ListKind, loadLists, noLists } from './load-lists.ts'
import type { Member } from './member.ts'

const KINDS_OF_CHANGE: ReadonlyMap<string, readonly ListKind[]> = new Map([
  [NOTIFICATIONS.toolsListChanged, ['tools']],
  [NOTIFICATIONS.promptsListChanged, ['prompts']],
  [NOTIFICATIONS.resourcesListChanged, ['resources', 'resourceTemplates']],
])

export type { ListKind }

export interface MemberListsOptions {
  readonly member: Member
  readonly clock: Clock
  readonly log: Log
  /** Of a backend that this one replaces: they stand in until the first attempt has ended. */
  readonly inherited?: BackendLists | undefined
  /** The lists are different from before. */
  onChange(): void
}

const ALL_LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }

/** How long a list is taken for the truth: without announcements of the backend, and with them. */
const FRESH_MS = 30_000
const ANNOUNCED_FRESH_MS = 300_000
const LIST_TIMEOUT_MS = 30_000
const DEBOUNCE_MS = 50
/** The longest rest before a change that was announced is loaded. */
const MAX_REST_MS = 5_000
/** A backend that has not answered yet may just be starting: for that time it is asked at least so often. */
const STARTING_MS = 120_000
const STARTING_DELAY_MS = 5_000

/** The lists of one backend, kept current in the background: no client ever waits for a backend that is slow to list. */
export class MemberLists {
  readonly #options: MemberListsOptions
  readonly #closing = new AbortController()
  readonly #first = Promise.withResolvers<void>()
  readonly #due = new Set<ListKind>(LIST_KINDS)
  #lists: BackendLists | undefined
  #inherited: BackendLists | undefined
  #listening: Listening | undefined
  #isListening = false
  #wake: (() => void) | undefined
  #isFailing = false
  #isLookDue = false
  #freshUntil = 0
  #restsUntil = 0
  /** Of the last load; the first one connects too, and does not count. */
  #tookMs = 0
  /** Of the lists that were loaded last. */
  #ttlMs: number | undefined

  constructor(options: MemberListsOptions) {
    this.#options = options
    this.#inherited = options.inherited
  }

  /** Undefined until the backend has answered once, if it has not inherited any. Kept while it is away. */
  get lists(): BackendLists | undefined {
    return this.#lists ?? this.#inherited
  }

  /** The first attempt has ended, however it did. */
  get attempted(): Promise<void> {
    return this.#first.promise
  }

  get freshForMs(): number {
    return this.#lists === undefined ? 0 : Math.max(0, this.#freshUntil - this.#options.clock.monotonic())
  }

  /** Something says that the backend serves now: one that did not answer is asked again at once. Looks in vain come further and further apart. */
  look(): void {
    const isAsleep = this.#wake !== undefined
    if (isAsleep && !this.#isFailing) return
    this.#isLookDue = true
    this.#wake?.()
  }

  /** As `look`, for an answer of the backend to something else; one that comes while it is asked may be that of the listing itself. */
  answered(): void {
    if (this.#wake !== undefined) this.look()
  }

  /** The backend is asked with other credentials from now on, and may show something else. What is known stays until it has answered. */
  renew(): void {
    this.#isLookDue = true
    this.#makeDue(LIST_KINDS)
  }

  /** Runs until it is closed. */
  async run(): Promise<void> {
    const { clock } = this.#options
    const backoff = createBackoff({ baseMs: 500, maxMs: FRESH_MS })
    /** Rests after looks that were in vain: signs that come and go without end cost little. */
    const looks = createBackoff({ baseMs: 250, maxMs: MAX_REST_MS })
    const startedAt = clock.monotonic()
    const { signal } = this.#closing
    while (!signal.aborted) {
      const isLook = this.#isLookDue
      this.#isLookDue = false
      const isLoaded = await this.#refresh(signal)
      this.#isFailing = !isLoaded
      this.#disinherit(signal)
      this.#first.resolve()
      if (isLoaded || isLook) backoff.reset()
      if (isLoaded) looks.reset()
      else if (isLook) this.#restsUntil = clock.monotonic() + looks.next()
      if (isLoaded ? this.#due.size > 0 : this.#isLookDue) {
        await this.#rest(signal)
        continue
      }
      const isStarting = this.#lists === undefined && clock.monotonic() - startedAt < STARTING_MS
      const retryMs = () => Math.min(backoff.next(), isStarting ? STARTING_DELAY_MS * (1 - Math.random() / 2) : FRESH_MS)
      const usualMs = this.#listening === undefined ? FRESH_MS : ANNOUNCED_FRESH_MS
      const freshMs = this.#ttlMs === undefined ? usualMs : boundedTtl(this.#ttlMs)
      const delayMs = isLoaded ? Math.max(freshMs * (1 - Math.random() / 10), REST_FACTOR * this.#tookMs) : retryMs()
      this.#freshUntil = clock.monotonic() + delayMs
      if (await this.#sleep(delayMs, signal)) for (const kind of LIST_KINDS) this.#due.add(kind)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#wake?.()
    this.#first.resolve()
    await this.#listening?.close()
  }

  #disinherit({ aborted }: AbortSignal): void {
    if (this.#inherited === undefined || aborted) return
    this.#inherited = undefined
    if (this.#lists === undefined) this.#options.onChange()
  }

  /** True when the time is over, false when something became due before. */
  async #sleep(ms: number, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options
    const woken = new AbortController()
    this.#wake = () => woken.abort()
    signal.addEventListener('abort', this.#wake, { once: true })
    const isOver = await clock.sleep(ms, woken.signal).then(
      () => true,
      () => false,
    )
    signal.removeEventListener('abort', this.#wake)
    this.#wake = undefined
    if (!isOver) await this.#rest(signal)
    return isOver
  }

  /** Servers announce changes one by one. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    await clock.sleep(Math.max(DEBOUNCE_MS, this.#restsUntil - clock.monotonic()), signal).catch(() => undefined) // closed: the loop ends
  }

  async #refresh(closing: AbortSignal): Promise<boolean> {
    const { member, clock, log } = this.#options
    const kinds = [...this.#due]
    this.#due.clear()
    const limit = { clock, timeoutMs: LIST_TIMEOUT_MS, what: 'listing', signals: [closing] }
    const isFirst = this.#lists === undefined
    const startedAt = clock.monotonic()
    try {
      await withTimeLimit(limit, (signal) => member.observed(() => this.#load(kinds, signal)))
      const endedAt = clock.monotonic()
      if (!isFirst) this.#tookMs = endedAt - startedAt
      this.#restsUntil = endedAt + Math.min(MAX_REST_MS, REST_FACTOR * this.#tookMs)
      if (!this.#isListening) void this.#listen()
      return true
    } catch (error) {
      for (const kind of kinds) this.#due.add(kind)
      if (!closing.aborted) log.warn('could not list what a backend offers', { backend: member.name, error: failureText(error) })
      return false
    }
  }

  async #load(kinds: readonly ListKind[], signal: AbortSignal): Promise<void> {
    const { member, log, onChange } = this.#options
    const { lists: loaded, ttlMs } = await loadLists(member, { kinds, log, signal })
    this.#ttlMs = ttlMs
    const before = this.#lists
    if (before !== undefined && kinds.every((kind) => jsonEqual(loaded[kind], before[kind]))) return
    this.#lists = { ...(before ?? noLists(member.name)), ...loaded }
    onChange()
  }

  /** Hears about changes, where the backend announces them, until it is closed. Attempts that fail come further and further apart. */
  async #listen(): Promise<void> {
    const { member, clock, log } = this.#options
    const { signal } = this.#closing
    const backoff = createBackoff({ baseMs: 1_000, maxMs: ANNOUNCED_FRESH_MS })
    this.#isListening = true
    while (!signal.aborted && announcesChanges(member.shared.capabilities)) {
      try {
        this.#listening = await member.shared.listen(ALL_LISTS, {
          signal,
          onNotification: (notification) => this.#notified(notification),
          onGap: () => this.#makeDue(LIST_KINDS),
        })
        backoff.reset()
        // Changes between the listing and now were not announced.
        this.#makeDue(LIST_KINDS)
        await this.#listening.done
      } catch (error) {
        if (!signal.aborted) log.info('a backend does not announce changes', { backend: member.name, error: failureText(error) })
      }
      this.#listening = undefined
      await clock.sleep(backoff.next(), signal).catch(() => undefined) // closed: the loop ends
    }
    this.#isListening = false
  }

  #notified({ method }: JsonRpcNotification): void {
    this.#makeDue(KINDS_OF_CHANGE.get(method) ?? [])
  }

  #makeDue(kinds: readonly ListKind[]): void {
    for (const kind of kinds) this.#due.add(kind)
    if (kinds.length > 0) this.#wake?.()
  }
}

function announcesChanges(capabilities: JsonObject): boolean {
  return ['tools', 'prompts', 'resources'].some((name) => {
    const capability = capabilities[name]
    return isObject(capability) && capability['listChanged'] === true
  })
}
