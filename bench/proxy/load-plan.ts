/** Orders to the load generator over IPC, and its answers. One order at a time. */

export type Era = 'legacy' | 'modern'

export type Order =
  /** Opens the sessions: each has a connection of its own, and in the legacy era a handshake. */
  | { readonly order: 'open'; readonly target: LoadTarget; readonly era: Era; readonly sessions: number; readonly tool: Tool }
  /** Every session calls, waits for its answer, checks it and calls again; until the time is over and there are so many calls. */
  | { readonly order: 'run'; readonly durationMs: number; readonly minCalls?: number }
  /** With `keep` the legacy sessions stay open at the server; only the connections go. */
  | { readonly order: 'close'; readonly keep?: boolean }

/** `headers` go with every request: names and values in turn. */
export type LoadTarget = { readonly url: string; readonly headers?: readonly string[] } | { readonly command: readonly string[] }

/** `list` stands for `tools/list`; the result of `large` has a megabyte. */
export type Tool = 'echo' | 'echo_stream' | 'large' | 'list'

export interface LoadReport {
  readonly calls: number
  readonly ms: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export type Reply = { readonly ok: true; readonly report?: LoadReport } | { readonly ok: false; readonly error: string }
