import { type Backoff, createBackoff } from '@thv/kernel/backoff'
import { MountError } from '../volumes/mount-error.ts'
import type { PodContext } from './pod-context.ts'

/** Mounts a pod's volumes and keeps their files up to date: objects change, and tokens grow old. */
export class VolumeKeeper {
  readonly #context: PodContext
  readonly #signal: AbortSignal
  #refreshing: Promise<void> | undefined
  #isWanted = false
  #isMounted = false
  #renewal: { cancel(): void } | undefined
  readonly #backoff: Backoff

  constructor(context: PodContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
    const { retry } = context.env.timings
    this.#backoff = createBackoff({ baseMs: Math.min(500, retry), maxMs: retry })
  }

  /** Tries until all are there. Rejects when the signal aborts only. */
  async mount(): Promise<void> {
    const { volumes, waitForChange } = this.#context
    for (;;) {
      this.#isWanted = false
      try {
        await volumes.setUp(this.#context.pod, this.#signal)
        this.#isMounted = true
        this.#backoff.reset()
        this.#armRenewal()
        if (this.#isWanted) this.refresh() // an object may have changed after it was read
        return
      } catch (error) {
        if (!(error instanceof MountError)) throw error
        this.#tell(error)
        await waitForChange(this.#backoff.next(), this.#signal)
      }
    }
  }

  /** Never waits, never throws. While volumes are being mounted it is remembered. */
  refresh(): void {
    if (this.#signal.aborted) return
    this.#isWanted = true
    if (!this.#isMounted) return
    this.#refreshing ??= this.#work().finally(() => {
      this.#refreshing = undefined
      if (this.#isWanted) this.refresh() // it came when the work was just over
    })
  }

  /** After the signal, or when the containers have ended by themselves. Resolves when nothing is written any more. */
  async close(): Promise<void> {
    this.#isMounted = false
    while (this.#refreshing) await this.#refreshing
    this.#renewal?.cancel()
  }

  async #work(): Promise<void> {
    const { env, volumes } = this.#context
    while (this.#isWanted && !this.#signal.aborted) {
      this.#isWanted = false
      let isCurrent = false
      try {
        // Mounted files stay; an event says that they are out of date.
        const errors = await volumes.refresh(this.#context.pod, this.#signal)
        for (const error of errors) this.#tell(error)
        isCurrent = errors.length === 0
      } catch (error) {
        if (!this.#signal.aborted) env.onError(error, this.#context.pod.metadata)
      }
      if (isCurrent) this.#backoff.reset()
      this.#armRenewal(isCurrent ? Infinity : this.#backoff.next())
    }
  }

  /** For the next token that grows old, or at the latest after `retryMs`: a failure may not be reported again. */
  #armRenewal(retryMs = Infinity): void {
    const { clock } = this.#context.env
    this.#renewal?.cancel()
    const { renewAt = Infinity } = this.#context.volumes
    const delay = Math.min(retryMs, Math.max(0, renewAt - clock.monotonic()) + 1)
    if (delay === Infinity || this.#signal.aborted) return
    this.#renewal = clock.setTimer(delay, () => this.refresh())
  }

  #tell({ volume, message }: MountError): void {
    this.#context.event('Warning', 'FailedMount', `MountVolume.SetUp failed for volume ${JSON.stringify(volume)} : ${message}`)
  }
}
