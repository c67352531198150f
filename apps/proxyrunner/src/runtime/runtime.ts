import type { Readable, Writable } from 'node:stream'
import type { BackendProblem } from '@thv/gateway/backend'
import type { ProgramEnd as StdioEnd } from '@thv/programs/program-end'

/** Runs the MCP server: a child process of this one (`local`), or a StatefulSet (`kubernetes`). */
export interface Runtime {
  readonly name: 'local' | 'kubernetes'
  /**
   * For servers with an HTTP transport. Makes the server run and keeps it running until the signal aborts. Resolves as soon as the
   * address is known; whether anything answers there is `state`.
   */
  startServer(signal: AbortSignal): Promise<ServerHandle>
  /**
   * For stdio servers: one more connection to a server process. Locally each is a process of its own; on Kubernetes each is an attach
   * to a pod, and `stdioCapacity` says how many there can be at a time. The signal counts until the connection is open, no longer.
   */
  openStdio(signal: AbortSignal): Promise<StdioConnection>
  readonly stdioCapacity: number
  /** Why the server cannot run, where only the runtime knows. */
  readonly problem?: BackendProblem | undefined
  /** Reports a problem of the server to its owner; undefined: it is solved. Never throws and never waits. */
  report?(problem: BackendProblem | undefined): void
  /** Ends what this process started. On Kubernetes the workload stays: it belongs to the operator. */
  close(): Promise<void>
}

export interface ServerHandle {
  /** Base address of the server, without the path of the MCP endpoint. */
  readonly url: URL
  readonly state: WorkloadState
  /** Called after each change of `state`. Returns how to stop listening. */
  onChange(listener: () => void): () => void
}

export interface WorkloadState {
  readonly ready: boolean
  /** For people: why it is not ready, or since when it is. */
  readonly message: string
  /** Counts starts, to distinguish a restart from a pause. */
  readonly generation: number
}

export interface StdioConnection {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Resolves when the other side is gone, for whatever reason. Never rejects. */
  readonly ended: Promise<StdioEnd>
  /** Names the process at the other end. The same name on a later connection means the same process, with all that it remembers. */
  readonly instance?: string
  /** End of input, then SIGTERM, then SIGKILL, each after its limit. On Kubernetes: detaches. */
  close(): Promise<void>
}

export type { ProgramEnd as StdioEnd } from '@thv/programs/program-end'
