/** The node gives logs and streams of its pods to the API server through this. */
export interface PodStreams {
  /** Rejects with a StatusError when there is nothing to read: no such container, or one that has not started. */
  logs(target: ContainerTarget, options: PodLogOptions): Promise<AsyncIterable<Uint8Array>>
  /** Rejects with a StatusError when the container does not run. */
  attach(target: ContainerTarget, options: AttachOptions): Promise<AttachedContainer>
}

export interface ContainerTarget {
  readonly namespace: string
  readonly pod: string
  readonly uid: string
  readonly container: string
}

export interface PodLogOptions {
  readonly follow: boolean
  readonly previous: boolean
  readonly timestamps: boolean
  readonly tailLines?: number
  readonly limitBytes?: number
  /** Epoch milliseconds. */
  readonly since?: number
  readonly signal: AbortSignal
}

export interface AttachOptions {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly signal: AbortSignal
}

/** One client at a container's streams. Nothing from before the attach is replayed. */
export interface AttachedContainer {
  /** In the order they came; ends when the container does. A reader that is slow slows the container down, it loses nothing. */
  readonly output: AsyncIterable<{ readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }>
  /** Resolves when the container has taken the bytes. */
  write(bytes: Uint8Array): Promise<void>
  /** The client's end of file: closes the container's stdin where its spec says `stdinOnce`. */
  endInput(): void
  close(): void
}
