import type { Clock, Timer } from '@thv/kernel/clock'
import { type Placed, PlacedList } from '@thv/kernel/placed-list'

export interface TimedCall extends Placed {
  /** By the monotonic clock. It may move, but not to an earlier moment. */
  readonly dueAt: number
  /** Something is due. Afterward `dueAt` lies in the future, or the call is not in the list any more. */
  due(now: number): void
}

/** The deadlines of all calls with one timer, which stands at the earliest of them: nearly all calls end before it fires. */
export class CallDeadlines {
  readonly #clock: Clock
  readonly #calls = new PlacedList<TimedCall>()
  #timer: Timer | undefined
  #armedFor = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(call: TimedCall): void {
    this.#calls.add(call)
    if (call.dueAt < this.#armedFor) this.#arm(call.dueAt)
  }

  /** Does nothing when it is not there. */
  delete(call: TimedCall): void {
    this.#calls.delete(call)
  }

  close(): void {
    this.#timer?.cancel()
    this.#calls.clear()
  }

  #arm(dueAt: number): void {
    this.#timer?.cancel()
    this.#armedFor = dueAt
    this.#timer = this.#clock.setTimer(Math.max(0, dueAt - this.#clock.monotonic()), () => this.#check())
  }

  #check(): void {
    this.#timer = undefined
    this.#armedFor = Number.POSITIVE_INFINITY
    const now = this.#clock.monotonic()
    for (const call of [...this.#calls]) if (call.place >= 0 && call.dueAt <= now) call.due(now)
    let next = Number.POSITIVE_INFINITY
    for (const { dueAt } of this.#calls) if (dueAt < next) next = dueAt
    if (next < this.#armedFor) this.#arm(next)
  }
}
