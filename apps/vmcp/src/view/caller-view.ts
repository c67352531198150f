import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage } from '@thv/kernel/errors'
import type { Log } from '@thv/telemetry/log'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { LIST_KINDS, loadLists, noLists } from '../members/load-lists.ts'
import type { Member } from '../members/member.ts'
import type { BuiltView } from './built-view.ts'

export interface CallerViewOptions {
  readonly clock: Clock
  readonly log: Log
  /** Backends whose lists depend on the caller. */
  members(): readonly Member[]
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
  readonly freshUntil: number
}

/** The view of callers with credentials of their own. Lists are loaded while such a caller is served, never without one. */
export class CallerView {
  readonly #options: CallerViewOptions
  readonly #lists = new Map<Member, OwnLists>()
  readonly #loading = new Map<Member, Promise<void>>()
  #built: BuiltView
  #isStale = false

  constructor(options: CallerViewOptions) {
    this.#options = options
    this.#built = options.build([])
  }

  get now(): BuiltView {
    if (this.#isStale) this.#rebuild()
    return this.#built
  }

  /** Some list has never come. */
  get isMissing(): boolean {
    return this.#options.members().some((member) => !this.#lists.has(member))
  }

  get freshForMs(): number {
    const now = this.#options.clock.monotonic()
    return Math.min(...[...this.#lists.values()].map(({ freshUntil }) => Math.max(0, freshUntil - now)), FRESH_MS)
  }

  /** Loads what is old, with the credentials of the caller that is served. */
  async refresh(): Promise<void> {
    const { clock, members } = this.#options
    const current = new Set(members())
    for (const member of this.#lists.keys()) if (!current.has(member)) this.#lists.delete(member)
    const now = clock.monotonic()
    const old = [...current].filter((member) => (this.#lists.get(member)?.freshUntil ?? 0) <= now)
    await Promise.all(old.map((member) => this.#load(member)))
  }

  /** The lists that all callers share, or the settings, have changed. */
  invalidate(): void {
    this.#isStale = true
  }

  #rebuild(): void {
    this.#isStale = false
    const own = this.#options.members().flatMap((member) => this.#lists.get(member)?.lists ?? [])
    this.#built = this.#options.build(own)
  }

  #load(member: Member): Promise<void> {
    const known = this.#loading.get(member)
    if (known !== undefined) return known
    const loading = this.#loadOnce(member).finally(() => this.#loading.delete(member))
    this.#loading.set(member, loading)
    return loading
  }

  async #loadOnce(member: Member): Promise<void> {
    const { clock, log, onChange } = this.#options
    const limit = { clock, timeoutMs: LIST_TIMEOUT_MS, what: 'listing', signals: [member.signal] }
    try {
      const loaded = await withTimeLimit(limit, (signal) => member.observed(() => loadLists(member, { kinds: LIST_KINDS, log, signal })))
      this.#keep(member, { ...noLists(member.name), ...loaded }, FRESH_MS)
    } catch (error) {
      log.info('could not list what a backend offers a caller', { backend: member.name, error: errorMessage(error) })
      this.#keep(member, this.#lists.get(member)?.lists ?? noLists(member.name), RETRY_MS)
    }
    const before = this.now
    this.#rebuild()
    onChange(before, this.#built)
  }

  #keep(member: Member, lists: BackendLists, ms: number): void {
    this.#lists.set(member, { lists, freshUntil: this.#options.clock.monotonic() + ms })
  }
}
