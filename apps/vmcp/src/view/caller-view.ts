import { createHash } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { abortable, withTimeLimit } from '@thv/kernel/deadline'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Log } from '@thv/telemetry/log'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { failureText } from '../members/failure-text.ts'
import { boundedTtl, REST_FACTOR } from '../members/list-pages.ts'
import type { ListsBeforeLogin } from '../members/lists-before-login.ts'
import { LIST_KINDS, loadLists, noLists } from '../members/load-lists.ts'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import type { BuiltView } from './built-view.ts'
import type { Pool } from './pool.ts'

export interface CallerViewOptions {
  /** Of the caller that was seen first. */
  readonly party: string
  readonly clock: Clock
  readonly log: Log
  /** Its credentials at backends; callers with headers alone have none. */
  readonly user: string | undefined
  /** Backends whose lists depend on the caller. */
  members(): readonly Member[]
  /** Of a backend whose provider users log in to on demand. */
  beforeLogin(member: Member): ListsBeforeLogin | undefined
  /** Callers with equal lists keep them once. */
  readonly lists: Pool<BackendLists>
  /** Callers with equal lists have one view. */
  readonly views: Pool<BuiltView>
  /** Changes with the lists that all callers share, and with the settings. */
  generation(): number
  /** Joins the lists with those that all callers share. */
  build(own: readonly BackendLists[]): BuiltView
  /** The lists may be different from before. */
  onChange(before: BuiltView, after: BuiltView): void
}

const FRESH_MS = 30_000
const RETRY_MS = 5_000
const LIST_TIMEOUT_MS = 30_000

interface OwnLists {
  readonly lists: BackendLists
  readonly key: string
  readonly freshUntil: number
  readonly from: Origin
  /** Of the backend when it was asked: with other credentials it may show something else. */
  readonly revision: number
  /** Of a backend that was replaced: they stand in until the first attempt at its successor has ended. */
  readonly isInherited?: boolean
}

/** The backend has shown the lists to this caller, or it was not asked for lack of a login, or it has failed. */
type Origin = 'caller' | 'before login' | 'failure'

/** The view of callers with credentials of their own. Lists are loaded while such a caller is served, never without one. */
export class CallerView {
  readonly #options: CallerViewOptions
  readonly #lists = new Map<Member, OwnLists>()
  readonly #loading = new Map<Member, Promise<unknown>>()
  #built: BuiltView | undefined
  #key: string | undefined
  #isClosed = false

  constructor(options: CallerViewOptions) {
    this.#options = options
  }

  get party(): string {
    return this.#options.party
  }

  get now(): BuiltView {
    return this.#built ?? this.#rebuild()
  }

  /** Characters of its lists and of its view, also where others have the same. */
  get size(): number {
    const { lists, views } = this.#options
    let size = this.#key === undefined ? 0 : views.sizeOf(this.#key)
    for (const { key } of this.#lists.values()) size += lists.sizeOf(key)
    return size
  }

  /** Some list has never come. */
  get isMissing(): boolean {
    return this.#options.members().some((member) => !this.#lists.has(member))
  }

  get freshForMs(): number {
    const now = this.#options.clock.monotonic()
    return Math.min(...[...this.#lists].map(([member, own]) => (isOld(member, own, now) ? 0 : own.freshUntil - now)), FRESH_MS)
  }

  /** Backends that were not asked, because the caller had not logged in to their providers. */
  get awaitingLogin(): readonly Member[] {
    return [...this.#lists].flatMap(([member, { from }]) => (from === 'before login' ? [member] : []))
  }

  /**
   * Loads the lists of these backends with the credentials of the session that is served. Challenges that lead to logins that are still missing.
   * When the signal aborts it rejects, and backends that have not answered are no longer asked.
   */
  async loadAfterLogin(members: readonly Member[], signal: AbortSignal): Promise<readonly Rejection[]> {
    // Not shared with other sessions of the caller: they may have other logins.
    const challenges = await Promise.all(members.map((member) => this.#loadOnce(member, signal)))
    return challenges.filter((challenge) => challenge !== undefined)
  }

  /** Loads what is old, with the credentials of the caller that is served. */
  async refresh(): Promise<void> {
    const { clock, members } = this.#options
    const current = new Set(members())
    for (const member of this.#lists.keys()) if (!current.has(member)) this.#forget(member)
    const now = clock.monotonic()
    const old = [...current].filter((member) => isOld(member, this.#lists.get(member), now))
    await Promise.all(old.map((member) => this.#load(member)))
  }

  /** Shows the lists of a backend that has left as those of its successor, until that was asked. */
  inherit(member: Member, successor: Member): void {
    const known = this.#lists.get(member)
    if (known === undefined) return
    this.#lists.delete(member)
    this.#lists.set(successor, { ...known, freshUntil: 0, isInherited: true })
  }

  /** The lists that all callers share, or the settings, have changed. */
  invalidate(): void {
    if (this.#key !== undefined) this.#options.views.release(this.#key)
    this.#key = undefined
    this.#built = undefined
  }

  /** The caller has not been seen for long. */
  close(): void {
    this.#isClosed = true
    this.invalidate()
    for (const member of [...this.#lists.keys()]) this.#forget(member)
  }

  #rebuild(): BuiltView {
    const { members, generation, views, build } = this.#options
    const own = members().flatMap((member) => this.#lists.get(member) ?? [])
    const before = this.#key
    const key = [generation(), ...own.map((each) => each.key)].join(' ')
    // A request that began before it was closed may still look at it, but keeps nothing.
    if (this.#isClosed) return build(own.map(({ lists }) => lists))
    if (this.#built !== undefined && key === before) return this.#built
    this.#built = views.take(key, () => build(own.map(({ lists }) => lists)))
    this.#key = key
    if (before !== undefined) views.release(before)
    return this.#built
  }

  #load(member: Member): Promise<unknown> {
    const known = this.#loading.get(member)
    if (known !== undefined) return known
    const loading = this.#loadOnce(member).finally(() => this.#loading.delete(member))
    this.#loading.set(member, loading)
    return loading
  }

  /** The challenge that leads to the login that is missing, where one is. */
  async #loadOnce(member: Member, given?: AbortSignal): Promise<Rejection | undefined> {
    const { clock, log, onChange, user, beforeLogin } = this.#options
    const limit = { clock, timeoutMs: LIST_TIMEOUT_MS, what: 'listing', signals: [member.signal, given] }
    let challenge: Rejection | undefined
    const isFirst = !this.#lists.has(member)
    const startedAt = clock.monotonic()
    const { revision } = member
    try {
      const { lists: loaded, ttlMs = FRESH_MS } = await withTimeLimit(limit, (signal) =>
        member.observed(() => loadLists(member, { kinds: LIST_KINDS, log, signal })),
      )
      // The first one connects, too.
      const restMs = isFirst ? 0 : REST_FACTOR * (clock.monotonic() - startedAt)
      const freshMs = Math.max(boundedTtl(ttlMs), restMs)
      const lists = this.#keep(member, { ...noLists(member.name), ...loaded }, { from: 'caller', revision, freshMs })
      if (user !== undefined) beforeLogin(member)?.learn(user, lists)
    } catch (error) {
      // Nothing is known about the backend then.
      if (given?.aborted) throw error
      challenge = error instanceof LocalRefusal ? error.challenge : undefined
      if (challenge === undefined)
        log.info('could not list what a backend offers a caller', { backend: member.name, error: failureText(error) })
      const last = this.#lists.get(member)
      const known = last?.isInherited ? undefined : last
      const others = challenge === undefined || known?.from === 'caller' ? undefined : await this.#before(member, given)
      const from = known?.from === 'caller' ? 'caller' : challenge === undefined ? 'failure' : 'before login'
      this.#keep(member, others ?? known?.lists ?? noLists(member.name), { from, revision, freshMs: RETRY_MS })
    }
    if (this.#isClosed) return challenge
    const before = this.now
    onChange(before, this.#rebuild())
    return challenge
  }

  async #before(member: Member, signal: AbortSignal | undefined): Promise<BackendLists | undefined> {
    const current = this.#options.beforeLogin(member)?.current()
    return current === undefined || signal === undefined ? await current : await abortable(current, signal)
  }

  /** The lists as all callers with equal ones have them. */
  #keep(member: Member, lists: BackendLists, { freshMs, ...origin }: Keeping): BackendLists {
    if (this.#isClosed) return lists
    const { clock, lists: pool } = this.#options
    const before = this.#lists.get(member)
    const freshUntil = clock.monotonic() + freshMs
    const key = before?.lists === lists ? before.key : keyOf(lists)
    if (before?.key === key) {
      this.#lists.set(member, { lists: before.lists, key, freshUntil, ...origin })
      return before.lists
    }
    const kept = pool.take(key, () => lists)
    this.#lists.set(member, { lists: kept, key, freshUntil, ...origin })
    if (before !== undefined) pool.release(before.key)
    return kept
  }

  #forget(member: Member): void {
    const known = this.#lists.get(member)
    if (known !== undefined) this.#options.lists.release(known.key)
    this.#lists.delete(member)
  }
}

interface Keeping extends Pick<OwnLists, 'from' | 'revision'> {
  readonly freshMs: number
}

function isOld({ revision }: Member, own: OwnLists | undefined, now: number): boolean {
  return own === undefined || own.freshUntil <= now || own.revision !== revision
}

/** Names the backend too. */
function keyOf(lists: BackendLists): string {
  return createHash('sha256').update(JSON.stringify(lists)).digest('base64url')
}
