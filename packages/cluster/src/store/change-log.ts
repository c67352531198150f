import type { StoredObject } from './stored-object.ts'

/** One write. `current` of a deletion is the last state with the revision of the deletion. */
export interface Change {
  readonly revision: number
  readonly current: StoredObject
  readonly previous: StoredObject | undefined
  readonly deleted: boolean
  /** Its events for watchers, by form, so that all of them share one serialization. */
  readonly encoded: Map<string, Buffer>
}

export interface LogLimits {
  /** Per type. */
  readonly maxChanges: number
  /** Per type, of the texts the changes hold. */
  readonly maxBytes: number
}

/**
 * The latest changes of one type, in order. Watchers read it by revision and hold no queue of their own: one that falls behind its
 * oldest change has to list again.
 */
export class ChangeLog {
  readonly #limits: LogLimits
  #changes: Change[] = []
  #first = 0
  #bytes = 0
  #forgotten: number

  /** `since`: the revision up to which nothing is known, for example that of the start. */
  constructor(since: number, limits: LogLimits) {
    this.#forgotten = since
    this.#limits = limits
  }

  /** The oldest revision from which all later changes are known. */
  get oldest(): number {
    return this.#forgotten
  }

  get size(): number {
    return this.#changes.length - this.#first
  }

  append(change: Change): void {
    this.#changes.push(change)
    this.#bytes += weight(change)
    while (this.size > this.#limits.maxChanges || (this.#bytes > this.#limits.maxBytes && this.size > 1)) this.#dropFirst()
    this.#tidy()
  }

  /** Forgets everything up to and including `revision`. */
  compact(revision: number): void {
    while (this.size > 0 && (this.#changes[this.#first]?.revision ?? Infinity) <= revision) this.#dropFirst()
    this.#forgotten = Math.max(this.#forgotten, revision)
    this.#tidy()
  }

  /** The first change after `revision`; undefined when there is none yet. Ask only for what is not older than `oldest`. */
  next(revision: number): Change | undefined {
    const last = this.#changes.at(-1)
    if (last === undefined || last.revision <= revision || this.size === 0) return undefined
    let [low, high] = [this.#first, this.#changes.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#changes[middle]?.revision ?? 0) > revision) high = middle
      else low = middle + 1
    }
    return this.#changes[low]
  }

  /** From the newest to the oldest, as long as they are after `revision`. */
  *backTo(revision: number): Generator<Change> {
    for (let at = this.#changes.length - 1; at >= this.#first; at--) {
      const change = this.#changes[at]
      if (change === undefined || change.revision <= revision) return
      yield change
    }
  }

  #dropFirst(): void {
    const change = this.#changes[this.#first++]
    if (change === undefined) return
    this.#bytes -= weight(change)
    this.#forgotten = change.revision
  }

  /** Memory of dropped changes is given back in one piece now and then: a shift per write would cost too much. */
  #tidy(): void {
    if (this.#first < 1_024 && this.#first < this.#changes.length) return
    this.#changes = this.#changes.slice(this.#first)
    this.#first = 0
  }
}

function weight({ current, previous }: Change): number {
  return current.text.length + (previous?.text.length ?? 0)
}
