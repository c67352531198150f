import type { Clock } from '@thv/kernel/clock'
import type { Pod } from '@thv/kube'
import { instanceOf, isReady } from './pod-choice.ts'

export interface AttachHistoryOptions {
  readonly clock: Clock
  /** How long the status of a pod may lag behind what happened in it. */
  readonly statusLagMs: number
  /** How often a process is given up before it is replaced. */
  readonly maxGiveUps?: number
}

/**
 * Facts about the processes in the pods beyond their status.
 *
 * Found: it ran when this runner first saw any pod, or another runner held it, so another one may have spoken to it. Many servers take one handshake for life, and no
 * runner can tell what was said before; if such a process is given up again and again, a new one is the only way out.
 * A process that has started under our eyes and is given up is just broken, and starting it again would not help.
 *
 * In doubt: its stream was ended in order, so it is most likely over, and what attaches now may already be the next process under the
 * name of the old one. It is left alone until the status has changed or had the time to.
 */
export class AttachHistory {
  readonly #options: AttachHistoryOptions
  readonly #found = new Set<string>()
  readonly #giveUps = new Map<string, number>()
  readonly #doubtUntil = new Map<string, number>()
  #hasLooked = false

  constructor(options: AttachHistoryOptions) {
    this.#options = options
  }

  look(pods: readonly Pod[]): void {
    if (!this.#hasLooked) for (const pod of pods) if (isReady(pod)) this.#found.add(instanceOf(pod))
    this.#hasLooked ||= pods.length > 0
    this.#forgetAllBut(pods)
  }

  /** Another runner holds it, so it has been greeted. */
  usedElsewhere(instance: string): void {
    this.#found.add(instance)
  }

  endedInOrder(instance: string): void {
    this.#doubtUntil.set(instance, this.#options.clock.monotonic() + this.#options.statusLagMs)
  }

  /** Milliseconds until it can be attached to again. */
  doubtMs(pod: Pod): number {
    return Math.max(0, (this.#doubtUntil.get(instanceOf(pod)) ?? 0) - this.#options.clock.monotonic())
  }

  /** The user of the process gives it up. Returns whether it should be replaced; true at most once. */
  gaveUp(instance: string): boolean {
    const count = (this.#giveUps.get(instance) ?? 0) + 1
    this.#giveUps.set(instance, count)
    if (count < (this.#options.maxGiveUps ?? 2)) return false
    return this.#found.delete(instance)
  }

  wasUseful(instance: string): void {
    this.#giveUps.delete(instance)
  }

  #forgetAllBut(pods: readonly Pod[]): void {
    const instances = new Set(pods.map(instanceOf))
    for (const map of [this.#found, this.#giveUps, this.#doubtUntil]) {
      for (const instance of map.keys()) if (!instances.has(instance)) map.delete(instance)
    }
  }
}
