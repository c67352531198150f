import { createBackoff } from '@thv/kernel/backoff'
import { MountError } from '../volumes/mount-error.ts'
import type { PodContext } from './pod-context.ts'

/** Mounts a pod's volumes and keeps their files up to date: objects change, and tokens grow old. */
export class VolumeKeeper {
  readonly #context: PodContext
  readonly #signal: AbortSignal
  #refreshing: Promise<void> | undefined
  #isWanted = false
  #renewal: { cancel(): void } | undefined

  constructor(context: PodContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
  }

  /** Tries until all are there. Rejects when the signal aborts only. */
  async mount(): Promise<void> {
    const { env, volumes, waitForChange } = this.#context
    const backoff = createBackoff({ baseMs: Math.min(500, env.timings.retry), maxMs: env.timings.retry })
    for (;;) {
      try {
        await volumes.setUp(this.#context.pod, this.#signal)
        this.#armRenewal()
        return
      } catch (error) {
        if (!(error instanceof MountError)) throw error
        this.#tell(error)
        await waitForChange(backoff.next(), this.#signal)
      }
    }
  }

  /** Never waits, never throws. */
  refresh(): void {
    if (this.#signal.aborted) return
    this.#isWanted = true
    this.#refreshing ??= this.#work().finally(() => {
      this.#refreshing = undefined
      if (this.#isWanted) this.refresh() // it came when the work was just over
    })
  }

  /** After the signal. Resolves when nothing is written any more. */
  async close(): Promise<void> {
    this.#renewal?.cancel()
    while (this.#refreshing) await this.#refreshing
  }

  async #work(): Promise<void> {
    const { env, volumes } = this.#context
    while (this.#isWanted && !this.#signal.aborted) {
      this.#isWanted = false
      try {
        // What is mounted stays; whoever looks at the events learns that it is out of date.
        for (const error of await volumes.refresh(this.#context.pod, this.#signal)) this.#tell(error)
      } catch (error) {
        if (!this.#signal.aborted) env.onError(error, this.#context.pod.metadata)
      }
      this.#armRenewal()
    }
  }

  #armRenewal(): void {
    const { clock } = this.#context.env
    this.#renewal?.cancel()
    const due = this.#context.volumes.renewAt
    if (due === undefined || this.#signal.aborted) return
    this.#renewal = clock.setTimer(Math.max(0, due - clock.monotonic()) + 1, () => this.refresh())
  }

  #tell({ volume, message }: MountError): void {
    this.#context.event('Warning', 'FailedMount', `MountVolume.SetUp failed for volume ${JSON.stringify(volume)} : ${message}`)
  }
}
