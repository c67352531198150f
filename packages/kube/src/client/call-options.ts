export interface CallOptions {
  signal?: AbortSignal | undefined
  /** Limit for the whole call with its retries; for `listPages` and `listAll` per page, for `watch` until the stream is open. Default 30 s. */
  timeoutMs?: number | undefined
  /** Such as `status` or `scale`. */
  subresource?: string | undefined
}

export interface GetOptions extends CallOptions {
  resourceVersion?: string | undefined
}

export interface ListOptions extends CallOptions {
  /** Left out: all namespaces. */
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  limit?: number | undefined
  continue?: string | undefined
  resourceVersion?: string | undefined
  resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined
}

export interface WriteOptions {
  fieldManager?: string | undefined
  dryRun?: boolean | undefined
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore' | undefined
}

export interface ApplyOptions extends CallOptions {
  fieldManager: string
  /** Takes over fields that another manager owns, instead of failing with 409. */
  force?: boolean | undefined
  dryRun?: boolean | undefined
  fieldValidation?: WriteOptions['fieldValidation']
}

export interface DeleteOptions extends CallOptions {
  preconditions?: { uid?: string | undefined; resourceVersion?: string | undefined } | undefined
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined
  gracePeriodSeconds?: number | undefined
  dryRun?: boolean | undefined
}

export type DeleteCollectionOptions = ListOptions & Omit<DeleteOptions, 'preconditions' | 'subresource'>

export interface WatchOptions extends ListOptions {
  /** Events after this version. `'0'` and `''` are the server's own shorthands and are passed on. */
  resourceVersion: string
  /** Default true. */
  allowBookmarks?: boolean | undefined
  /** After this long the server ends the stream. Default 290 s, below the silence limit of the watch connection. */
  timeoutSeconds?: number | undefined
}

/** RFC 6902. */
export type JsonPatchOp =
  | { op: 'add' | 'replace' | 'test'; path: string; value: unknown }
  | { op: 'remove'; path: string }
  | { op: 'move' | 'copy'; from: string; path: string }

export type Patch =
  | { kind: 'json'; ops: readonly JsonPatchOp[] }
  | { kind: 'merge'; body: unknown }
  /** Built-in kinds only; the server refuses it for custom resources. */
  | { kind: 'strategic'; body: unknown }
  | { kind: 'apply'; object: unknown; fieldManager: string; force?: boolean | undefined }

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface RawOptions {
  signal?: AbortSignal | undefined
  timeoutMs?: number | undefined
  query?: Record<string, string | number | boolean | undefined> | undefined
  /** A string or bytes go out as they are, anything else as JSON. */
  body?: unknown
  contentType?: string | undefined
  accept?: string | undefined
}

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  text(): string
  /** Throws `kube_response_malformed`. */
  json(): unknown
}

export interface StreamOptions {
  signal?: AbortSignal | undefined
  /** Until the answer begins. Default 30 s. */
  timeoutMs?: number | undefined
  query?: Record<string, string | number | boolean | undefined> | undefined
  /** Default: anything. */
  accept?: string | undefined
  /** Silence longer than this is taken for a broken connection. Default: none. */
  silenceMs?: number | undefined
}
