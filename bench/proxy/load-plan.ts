/** Orders to the load generator over IPC, and its answers. One order at a time. */

export type Era = 'legacy' | 'modern'

export type Order =
  /** Opens the sessions: each has a connection of its own, and in the legacy era a handshake. */
  | { readonly order: 'open'; readonly target: LoadTarget; readonly era: Era; readonly sessions: number; readonly tool: Tool }
  /** Every session calls, waits for its answer, checks it and calls again. */
  | { readonly order: 'run'; readonly durationMs: number }
  /** With `keep` the legacy sessions stay open at the server; only the connections go. */
  | { readonly order: 'close'; readonly keep?: boolean }

export type LoadTarget = { readonly url: string } | { readonly command: readonly string[] }

export type Tool = 'echo' | 'echo_stream'

export interface LoadReport {
  readonly calls: number
  readonly ms: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export type Reply = { readonly ok: true; readonly report?: LoadReport } | { readonly ok: false; readonly error: string }
