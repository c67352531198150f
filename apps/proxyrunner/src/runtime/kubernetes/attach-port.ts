import type { StdioConnection, StdioEnd } from '../runtime.ts'

export interface AttachTarget {
  readonly namespace: string
  readonly pod: string
  readonly container: string
}

export interface AttachEnd extends StdioEnd {
  /**
   * The other side ended the stream in order. As a rule the process is over, and the status of the pod will say so a little later;
   * without it only the connection is known to be gone.
   */
  readonly inOrder?: boolean
}

export interface AttachedStream extends StdioConnection {
  readonly ended: Promise<AttachEnd>
}

/** How to reach the standard streams of a container that runs. */
export interface AttachPort {
  /**
   * The signal counts until the connection is open. `ended` resolves when the stream ends, which says nothing about the pod: it may
   * have gone, or only the connection. `close` detaches; the container goes on. What it printed before is not shown.
   */
  attach(target: AttachTarget, signal: AbortSignal): Promise<AttachedStream>
}
