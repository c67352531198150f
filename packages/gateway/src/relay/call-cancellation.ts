import type { CancelListener, Cancellation } from '@thv/http/cancellation'

/** Cancellation of a call, for one listener: an AbortController for each call would cost more than the call. */
export class CallCancellation implements Cancellation {
  #listener: CancelListener | undefined
  #aborted = false
  #reason: unknown

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  addEventListener(_type: 'abort', listener: CancelListener): void {
    this.#listener = listener
  }

  removeEventListener(_type: 'abort', listener: CancelListener): void {
    if (this.#listener === listener) this.#listener = undefined
  }

  /** Once; what comes later has no effect. */
  cancel(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#listener?.handleEvent()
  }
}
