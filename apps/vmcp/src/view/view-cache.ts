import type { Clock } from '@thv/kernel/clock'
import { endsWithin } from '@thv/kernel/deadline'
import type { Log } from '@thv/telemetry/log'
import type { AggregationConfig } from '@thv/vmcpconfig/vmcp-config'
import { aggregate, sortedByKey, type View } from '../aggregate/aggregate.ts'
import { type ChangedHands, changedHands } from '../aggregate/changed-hands.ts'
import { type CompositeOffers, type NamedWorkflow, offerComposites } from '../compose/composite-offers.ts'
import type { Member } from '../members/member.ts'
import { LIST_KINDS, type ListKind, MemberLists } from '../members/member-lists.ts'
import { isSameList, type Listed, type ListText, listText } from './list-text.ts'

export interface ViewCacheOptions {
  readonly members: readonly Member[]
  readonly config: AggregationConfig
  /** Composite tools under their advertised names. */
  readonly workflows?: readonly NamedWorkflow[]
  readonly clock: Clock
  readonly log: Log
}

type Listener = (changed: ReadonlySet<ListKind>) => void

/** A list that never came is waited for this long in all; then it is left out, and announced when it comes. */
const FIRST_WAIT_MS = 1_000

/** The joined lists of all backends, answered from memory. */
export class ViewCache {
  readonly #options: ViewCacheOptions
  readonly #lists: readonly MemberLists[]
  readonly #listeners = new Set<Listener>()
  readonly #reservedNames: ReadonlySet<string>
  #view: View
  #composites: CompositeOffers
  #isAttempted = false
  #reported: ReadonlySet<string> = new Set()
  #texts: Readonly<Record<ListKind, ListText>>
  #moved: readonly ChangedHands[] = []
  #waiting: Promise<unknown> | undefined

  constructor(options: ViewCacheOptions) {
    const { members, config, clock, log } = options
    this.#options = options
    this.#lists = members.map((member) => new MemberLists({ member, clock, log, onChange: () => this.#rebuild() }))
    this.#reservedNames = new Set(options.workflows?.map(({ name }) => name))
    this.#view = aggregate([], { config })
    this.#composites = offerComposites(this.#view, options.workflows ?? [])
    this.#texts = textsOf(this.#view, this.#composites)
  }

  start(): void {
    for (const lists of this.#lists) void lists.run()
    void this.attempted.then(() => {
      this.#isAttempted = true
      this.#report(this.#composites)
    })
  }

  /** Every backend has been asked once, and answered or failed. */
  get attempted(): Promise<unknown> {
    this.#waiting ??= Promise.all(this.#lists.map(({ attempted }) => attempted))
    return this.#waiting
  }

  /** Some backend has not answered yet. */
  get isMissing(): boolean {
    return this.#lists.some(({ lists }) => lists === undefined)
  }

  /** Milliseconds for which clients may keep a list. */
  get freshForMs(): number {
    return Math.floor(Math.min(...this.#lists.map(({ freshForMs }) => freshForMs), Number.MAX_SAFE_INTEGER))
  }

  /** The view as it is. */
  get now(): View {
    return this.#view
  }

  /** Composite tools as they are: those that can run, and why others cannot. */
  get composites(): CompositeOffers {
    return this.#composites
  }

  /** Names that led to another backend before the last change. */
  get moved(): readonly ChangedHands[] {
    return this.#moved
  }

  textOf(kind: ListKind): ListText {
    return this.#texts[kind]
  }

  /** The view, once all backends have answered or the wait is over. Synchronous as soon as nothing is missing. */
  current(): View | Promise<View> {
    return this.isMissing ? this.#afterFirst() : this.#view
  }

  onChange(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    await Promise.all(this.#lists.map((lists) => lists.close()))
  }

  async #afterFirst(): Promise<View> {
    await endsWithin(this.attempted, FIRST_WAIT_MS, this.#options.clock)
    return this.#view
  }

  #rebuild(): void {
    const { config, log, workflows = [] } = this.#options
    const lists = this.#lists.map(({ lists }) => lists).filter((known) => known !== undefined)
    const view = aggregate(lists, { config, reservedNames: this.#reservedNames })
    const composites = offerComposites(view, workflows)
    const texts = textsOf(view, composites)
    const changed = new Set(LIST_KINDS.filter((kind) => !isSameList(texts[kind], this.#texts[kind])))
    const moved = changedHands(this.#view, view)
    if (moved.length > 0) this.#moved = moved
    for (const { kind, name, from, to } of moved.slice(0, MAX_LOGGED))
      log.warn('a name leads to another backend now', { kind, name, from, to })
    this.#report(composites)
    this.#view = view
    this.#composites = composites
    this.#texts = texts
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

function textsOf(view: View, { offered }: CompositeOffers): Readonly<Record<ListKind, ListText>> {
  return {
    tools: listText(offered.size === 0 ? view.tools : sortedByKey(new Map<string, Listed>([...view.tools, ...offered]))),
    prompts: listText(view.prompts),
    resources: listText(view.resources),
    resourceTemplates: listText(view.resourceTemplates),
  }
}
