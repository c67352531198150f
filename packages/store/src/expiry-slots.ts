import type { Clock, Timer } from '@thv/kernel/clock'

/** Members that an entry carries so that it can be taken out of its slot again. */
export interface Slotted {
  slot: number
}

/** A slot is this part of the shortest lifetime seen, so that memory is given back soon after it is due. */
const SLOTS_PER_TTL = 4
const MIN_SLOT_MS = 1_000

/**
 * Gives memory back without a timer per entry, and without work when an entry is used: entries lie in slots of time by when they were
 * due when they were put there. When a slot is over, what has been used since moves on to a later one.
 */
export class ExpirySlots<E extends Slotted> {
  /** By their end. */
  readonly #slots = new Map<number, Set<E>>()
  readonly #clock: Clock
  /** Says when the entry is due now, or undefined when it has been dropped. */
  readonly #check: (entry: E, now: number) => number | undefined
  #slotMs = Infinity
  #timer: Timer | undefined

  constructor(clock: Clock, check: (entry: E, now: number) => number | undefined) {
    this.#clock = clock
    this.#check = check
  }

  add(entry: E, ttlMs: number): void {
    const wanted = Math.max(MIN_SLOT_MS, ttlMs / SLOTS_PER_TTL)
    if (wanted < this.#slotMs) {
      this.#slotMs = wanted
      this.#stop()
    }
    this.#put(entry, this.#clock.monotonic() + ttlMs)
    this.#timer ??= this.#clock.setTimer(this.#slotMs, () => this.#tick())
  }

  delete(entry: E): void {
    const slot = this.#slots.get(entry.slot)
    if (slot?.delete(entry) && slot.size === 0) this.#slots.delete(entry.slot)
    if (this.#slots.size === 0) this.#stop()
  }

  close(): void {
    this.#stop()
    this.#slots.clear()
  }

  #tick(): void {
    this.#timer = undefined
    const now = this.#clock.monotonic()
    for (const [end, slot] of [...this.#slots]) {
      if (end > now) continue
      this.#slots.delete(end)
      for (const entry of slot) {
        const dueAt = this.#check(entry, now)
        if (dueAt !== undefined) this.#put(entry, dueAt)
      }
    }
    if (this.#slots.size > 0) this.#timer = this.#clock.setTimer(this.#slotMs, () => this.#tick())
  }

  #put(entry: E, dueAt: number): void {
    entry.slot = Math.ceil(dueAt / this.#slotMs) * this.#slotMs
    const slot = this.#slots.get(entry.slot)
    if (slot) slot.add(entry)
    else this.#slots.set(entry.slot, new Set([entry]))
  }

  #stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
