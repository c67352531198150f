import type { Clock } from '@thv/kernel/clock'
import { endsWithin } from '@thv/kernel/deadline'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Log } from '@thv/telemetry/log'
import type { View } from '../aggregate/aggregate.ts'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { type ChangedHands, changedHands } from '../aggregate/changed-hands.ts'
import type { CompositeOffers } from '../compose/composite-offers.ts'
import { fairOrder } from '../members/fair-order.ts'
import { ListsBeforeLogin } from '../members/lists-before-login.ts'
import type { ListKind } from '../members/load-lists.ts'
import type { Member } from '../members/member.ts'
import { MemberLists } from '../members/member-lists.ts'
import type { MemberRoster, RosterChange } from '../members/member-roster.ts'
import { credentialClass, type OutgoingScope, outgoingScope, partyOfScope, requestClass } from '../members/outgoing-scope.ts'
import { type BuiltView, buildView, changedKinds, sizeOf, type ViewSettings } from './built-view.ts'
import { CallerView } from './caller-view.ts'
import type { ListText } from './list-text.ts'
import { Pool } from './pool.ts'

export interface ViewCacheOptions {
  readonly roster: MemberRoster
  readonly settings: ViewSettings
  readonly clock: Clock
  readonly log: Log
  /** Characters of JSON that the views of single callers may hold together. */
  readonly maxCallerSize?: number
  /** A list that never came is waited for this long in all; a second unless given. Then it is left out, and announced when it comes. */
  readonly firstWaitMs?: number | undefined
}

type Listener = (changed: ReadonlySet<ListKind>) => void

const FIRST_WAIT_MS = 1_000
const MAX_CALLERS = 1_000
/** In memory each character costs several bytes: as an object, and as the text of a page. */
const MAX_CALLER_SIZE = 64 << 20

/**
 * The joined lists of all backends, answered from memory. Where the credentials of a backend are made from the caller's token, its lists belong to
 * that caller alone, and everything here is about the caller that is served (`outgoingScope`).
 */
export class ViewCache {
  readonly #options: ViewCacheOptions
  readonly #lists = new Map<Member, MemberLists>()
  readonly #beforeLogin = new WeakMap<Member, { readonly provider: string; readonly lists: ListsBeforeLogin }>()
  readonly #listeners = new Set<Listener>()
  /** By class of credentials, the one that was used longest ago first. */
  readonly #callers = new Map<string, CallerView>()
  readonly #callerLists = new Pool<BackendLists>((lists) => JSON.stringify(lists).length)
  readonly #callerViews = new Pool<BuiltView>(sizeOf)
  #generation = 0
  #settings: ViewSettings
  #shared: BuiltView
  #isStarted = false
  #isAttempted = false
  /** Known without looking at every backend: each call asks. */
  #isSharedMissing = false
  #reported: ReadonlySet<string> = new Set()
  #moved: readonly ChangedHands[] = []
  #waiting: Promise<unknown> | undefined
  /** The one wait for lists that all callers share, since the first client that needed it. */
  #firstWait: Promise<unknown> | undefined
  /** Every backend that is there now has been asked once, or was waited for long enough: who is missing is not waited for. */
  #isSettled = false

  constructor(options: ViewCacheOptions) {
    const { roster, settings } = options
    this.#options = options
    this.#settings = settings
    this.#shared = buildView([], settings)
    this.#changeRoster({ joined: roster.all, left: [], renewed: [], successors: new Map() })
    roster.onChange((change) => this.#changeRoster(change))
  }

  start(): void {
    this.#isStarted = true
    for (const lists of this.#lists.values()) void lists.run()
    void this.attempted.then(() => {
      this.#isAttempted = true
      this.#report(this.#shared.composites)
    })
  }

  /** Every backend has been asked once, and answered or failed. */
  get attempted(): Promise<unknown> {
    if (this.#waiting !== undefined) return this.#waiting
    const waiting = Promise.all([...this.#lists.values()].map(({ attempted }) => attempted)).then(() => {
      if (this.#waiting === waiting) this.#isSettled = true
    })
    this.#waiting = waiting
    return waiting
  }

  /** Some backend has not answered yet. */
  get isMissing(): boolean {
    return this.#isSharedMissing || this.#caller?.isMissing === true
  }

  /** Milliseconds for which clients may keep a list. */
  get freshForMs(): number {
    const own = this.#caller?.freshForMs ?? Number.MAX_SAFE_INTEGER
    return Math.floor(Math.min(...[...this.#lists.values()].map(({ freshForMs }) => freshForMs), own))
  }

  /** The view as it is. */
  get now(): View {
    return this.#built.view
  }

  /** The view with everything that belongs to it. Another object after every change. */
  get snapshot(): BuiltView {
    return this.#built
  }

  /** Composite tools as they are: those that can run, and why others cannot. */
  get composites(): CompositeOffers {
    return this.#built.composites
  }

  /** Names that led to another backend before the last change. */
  get moved(): readonly ChangedHands[] {
    return this.#moved
  }

  /** Callers with lists of their own, the different views that they have, and the characters that those hold. */
  get callers(): { readonly count: number; readonly views: number; readonly size: number } {
    return { count: this.#callers.size, views: this.#callerViews.count, size: this.#callerLists.size + this.#callerViews.size }
  }

  /** An index of so many bytes was made of a view, and is kept as long as the view is. That of all callers is no part of the bound. */
  indexed(built: BuiltView, bytes: number): void {
    this.#callerViews.grow(built, bytes)
    this.#makeRoom()
  }

  textOf(kind: ListKind): ListText {
    return this.#built.texts[kind]
  }

  /** The view, once all backends have answered or the wait is over. Synchronous as soon as nothing is missing, or what is missing has failed. */
  current(): View | Promise<View> {
    const caller = this.#caller
    if (caller !== undefined) {
      const refreshed = caller.refresh()
      if (caller.isMissing) return this.#after(this.#isSettled ? [refreshed] : [refreshed, this.#sharedOrLate()])
    }
    return this.#isSharedMissing && !this.#isSettled ? this.#after([this.#sharedOrLate()]) : this.now
  }

  /** Backends that were not asked for their lists, because the caller that is served had not logged in to their providers. */
  get awaitingLogin(): readonly Member[] {
    return this.#caller?.awaitingLogin ?? []
  }

  /** Asks these with the logins that the session has now. Challenges that lead to those that are still missing. Rejects when the signal aborts. */
  async loadAfterLogin(members: readonly Member[], signal: AbortSignal): Promise<readonly Rejection[]> {
    return (await this.#caller?.loadAfterLogin(members, signal)) ?? []
  }

  /** Takes over another aggregation or other composite tools. */
  reconfigure(settings: ViewSettings): void {
    this.#settings = settings
    this.#rebuild()
  }

  /** Something says that the backend serves now: if it did not answer, it is asked for its lists again. */
  look(backend: string): void {
    const member = this.#options.roster.get(backend)
    if (member !== undefined) this.#lists.get(member)?.look()
  }

  onChange(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    for (const caller of this.#callers.values()) caller.close()
    this.#callers.clear()
    await Promise.all([...this.#lists.values()].map((lists) => lists.close()))
  }

  #countMissing(): void {
    this.#isSharedMissing = [...this.#lists.values()].some(({ lists }) => lists === undefined)
  }

  get #built(): BuiltView {
    return this.#caller?.now ?? this.#shared
  }

  /** Undefined: all that this caller sees is shared. */
  get #caller(): CallerView | undefined {
    const scope = outgoingScope.getStore()
    const key = scope && requestClass(scope, this.#options.roster.isPerCaller)
    if (scope === undefined || key === undefined) return undefined
    const known = this.#callers.get(key)
    const view = known ?? this.#callerView(scope)
    this.#callers.delete(key)
    this.#callers.set(key, view)
    if (known === undefined) this.#makeRoom()
    return view
  }

  /**
   * Of the party that has the most, callers that were not seen for longest leave: one that comes with ever new headers pushes out its own views,
   * not those of others. The caller that was served last stays, however much it has.
   */
  #makeRoom(): void {
    const isTooMany = this.#callers.size > MAX_CALLERS
    if (!isTooMany && !this.#isTooMuch) return
    const last = [...this.#callers.keys()].at(-1)
    const canSpare = (_: CallerView, key: string) => key !== last
    const order = fairOrder(this.#callers, isTooMany ? { canSpare } : { canSpare, weightOf: ({ size }) => size })
    for (const key of order) {
      const caller = this.#callers.get(key)
      this.#callers.delete(key)
      caller?.close()
      if (this.#callers.size <= MAX_CALLERS && !this.#isTooMuch) return
    }
  }

  get #isTooMuch(): boolean {
    const { maxCallerSize = MAX_CALLER_SIZE } = this.#options
    return this.callers.size > maxCallerSize
  }

  #callerView(scope: OutgoingScope): CallerView {
    const { clock, log, roster } = this.#options
    const user = credentialClass(scope)
    const hasOwn = user !== undefined
    const passes = scope.passed !== undefined
    return new CallerView({
      ...{ party: partyOfScope(scope), user, beforeLogin: (member) => this.#beforeLoginOf(member) },
      ...{ clock, log, members: () => roster.all.filter(({ isPerCaller }) => (isPerCaller ? hasOwn : passes)) },
      ...{ lists: this.#callerLists, views: this.#callerViews, generation: () => this.#generation },
      build: (own) => {
        if (own.length === 0) return this.#shared
        const replaced = new Set(own.map(({ backend }) => backend))
        return buildView([...this.#sharedLists().filter(({ backend }) => !replaced.has(backend)), ...own], this.#settings)
      },
      onChange: (before, after) => {
        this.#makeRoom()
        if (before !== after) this.#announce(changedKinds(before, after))
      },
    })
  }

  /** Lists that were learned with logins to one provider say nothing about another. */
  #beforeLoginOf(member: Member): ListsBeforeLogin | undefined {
    const provider = member.onDemandProvider
    if (provider === undefined) return undefined
    const known = this.#beforeLogin.get(member)
    if (known?.provider === provider) return known.lists
    const { clock, log } = this.#options
    const lists = new ListsBeforeLogin({ member, clock, log })
    this.#beforeLogin.set(member, { provider, lists })
    return lists
  }

  /** A backend that hangs delays clients once. */
  #sharedOrLate(): Promise<unknown> {
    if (this.#firstWait !== undefined) return this.#firstWait
    const { clock, firstWaitMs = FIRST_WAIT_MS } = this.#options
    const wait = endsWithin(this.attempted, firstWaitMs, clock).then(() => {
      if (this.#firstWait === wait) this.#isSettled = true
    })
    this.#firstWait = wait
    return wait
  }

  async #after(work: readonly Promise<unknown>[]): Promise<View> {
    const { clock, firstWaitMs = FIRST_WAIT_MS } = this.#options
    await endsWithin(Promise.all(work), firstWaitMs, clock)
    return this.now
  }

  #changeRoster({ joined, left, renewed, successors }: RosterChange): void {
    const { clock, log } = this.#options
    for (const member of renewed) this.#lists.get(member)?.renew()
    if (joined.length + left.length === 0) return
    const inherited = new Map<Member, BackendLists | undefined>()
    for (const [member, successor] of successors) {
      inherited.set(successor, this.#lists.get(member)?.lists)
      for (const caller of this.#callers.values()) caller.inherit(member, successor)
    }
    for (const member of left) {
      void this.#lists.get(member)?.close()
      this.#lists.delete(member)
    }
    for (const member of joined) {
      if (member.isPerCaller) continue
      const lists = new MemberLists({ member, clock, log, inherited: inherited.get(member), onChange: () => this.#rebuild() })
      this.#lists.set(member, lists)
      member.health.onChange(() => {
        if (member.health.status === 'healthy') lists.answered()
      })
      if (this.#isStarted) void lists.run()
    }
    this.#waiting = undefined
    this.#firstWait = undefined
    this.#isSettled = false
    this.#countMissing()
    if (left.length > 0) this.#rebuild()
  }

  #sharedLists() {
    return [...this.#lists.values()].flatMap(({ lists }) => lists ?? [])
  }

  #rebuild(): void {
    const { log } = this.#options
    this.#countMissing()
    const built = buildView(this.#sharedLists(), this.#settings)
    const changed = changedKinds(this.#shared, built)
    const moved = changedHands(this.#shared.view, built.view)
    if (moved.length > 0) this.#moved = moved
    for (const { kind, name, from, to } of moved.slice(0, MAX_LOGGED))
      log.warn('a name leads to another backend now', { kind, name, from, to })
    this.#report(built.composites)
    this.#shared = built
    this.#generation++
    for (const caller of this.#callers.values()) caller.invalidate()
    this.#announce(changed)
  }

  #announce(changed: ReadonlySet<ListKind>): void {
    if (changed.size > 0) for (const listener of this.#listeners) listener(changed)
  }

  /** Each line once, as long as it holds. Before every backend has been asked, a tool that is missing is no news. */
  #report({ leftOut, warnings }: CompositeOffers): void {
    if (!this.#isAttempted) return
    const lines = new Set([...leftOut.map(({ name, reason }) => `${name} is not offered: ${reason}`), ...warnings])
    for (const line of lines) if (!this.#reported.has(line)) this.#options.log.warn('a composite tool needs attention', { problem: line })
    this.#reported = lines
  }
}

const MAX_LOGGED = 20
