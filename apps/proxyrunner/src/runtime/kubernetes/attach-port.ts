import type { StdioConnection } from '../runtime.ts'

export interface AttachTarget {
  readonly namespace: string
  readonly pod: string
  readonly container: string
}

/** How to reach the standard streams of a container that runs. */
export interface AttachPort {
  /**
   * The signal counts until the connection is open. `ended` resolves when the stream ends, which says nothing about the pod: it may
   * have gone, or only the connection. `close` detaches; the container goes on.
   */
  attach(target: AttachTarget, signal: AbortSignal): Promise<StdioConnection>
}
