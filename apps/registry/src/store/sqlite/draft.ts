import type { FetchState } from '@thv/catalog/sources/fetch/registry-handler'
import type { Clock } from '@thv/kernel/clock'
import type { Creation, RegistrySpec, SourceRecord } from '../registry-store.ts'

/** Never changed: another one takes its place. */
export interface SourceRow extends SourceRecord {
  readonly state: FetchState | undefined
}

export interface RegistryRow {
  readonly id: number
  readonly spec: RegistrySpec
  readonly creation: Creation
  /** Among the configured ones. */
  readonly position: number
  readonly createdAt: string
  readonly updatedAt: string
}

export interface Counters {
  data: number
  structure: number
  /** Epoch milliseconds. */
  lastTime: number
  lastId: number
}

/** The state that one write sees and changes. `sources` and `registries` take the place of the old ones when it is committed. */
export class Draft {
  readonly sources: Map<string, SourceRow>
  readonly registries: Map<string, RegistryRow>
  readonly counters: Counters
  readonly #clock: Clock
  #time: string | undefined
  #data = false
  #structure = false
  #kept = false

  constructor(base: { sources: Map<string, SourceRow>; registries: Map<string, RegistryRow>; counters: Counters }, clock: Clock) {
    this.sources = new Map(base.sources)
    this.registries = new Map(base.registries)
    this.counters = { ...base.counters }
    this.#clock = clock
  }

  /** The time of this write: later than that of every write before, whatever the clock says. */
  get time(): string {
    if (this.#time === undefined) {
      this.counters.lastTime = Math.max(this.#clock.now(), this.counters.lastTime + 1)
      this.#time = new Date(this.counters.lastTime).toISOString()
    }
    return this.#time
  }

  /** The revision of this write; asking for it takes it. */
  get revision(): number {
    if (!this.#data) {
      this.#data = true
      this.counters.data++
    }
    return this.counters.data
  }

  takeStructure(): void {
    if (this.#structure) return
    this.#structure = true
    this.counters.structure++
  }

  nextId(): number {
    return ++this.counters.lastId
  }

  /** Statuses are written too, though nothing else is. */
  keep(): void {
    this.#kept = true
  }

  get touched(): boolean {
    return this.#data || this.#structure || this.#kept
  }
}
