import type { Clock, Timer } from '@thv/kernel/clock'
import type { HttpLimits } from './http-limits.ts'

export interface WatchedBody {
  readonly startedAt: number
  readonly bytes: number
  /** Belongs to the watch: where the body stands in its list, -1 for nowhere. */
  place: number
  /** Called once, when it takes too long or comes too slowly. */
  tooSlow(): void
}

const CHECK_MS = 1_000

/**
 * Watches all bodies that are being read with one timer: most arrive with their headers and are gone before it fires. They know their
 * place in the list, so that coming and going costs next to nothing.
 */
export class SlowBodies {
  readonly #bodies: WatchedBody[] = []
  readonly #clock: Clock
  readonly #limits: HttpLimits
  #timer: Timer | undefined

  constructor(clock: Clock, limits: HttpLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  add(body: WatchedBody): void {
    body.place = this.#bodies.length
    this.#bodies.push(body)
    if (this.#timer === undefined) this.#arm()
  }

  /** Does nothing when it is not there. */
  delete(body: WatchedBody): void {
    const { place } = body
    if (this.#bodies[place] !== body) return
    body.place = -1
    const last = this.#bodies.pop()
    if (last === undefined || last === body) return
    this.#bodies[place] = last
    last.place = place
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    this.#timer = this.#clock.setTimer(CHECK_MS, () => this.#check())
  }

  #check(): void {
    const now = this.#clock.monotonic()
    for (const body of [...this.#bodies]) {
      if (!this.#isSlow(body, now)) continue
      this.delete(body)
      body.tooSlow()
    }
    if (this.#bodies.length > 0) this.#arm()
    else this.#timer = undefined
  }

  #isSlow({ startedAt, bytes }: WatchedBody, now: number): boolean {
    const { bodyTimeoutMs, bodyGraceMs, minBodyBytesPerSecond } = this.#limits
    const elapsed = now - startedAt
    return elapsed > bodyTimeoutMs || (elapsed > bodyGraceMs && bytes < (minBodyBytesPerSecond * elapsed) / 1_000)
  }
}
