/** An error that crosses the wire. `text` is all a client is told; everything else stays in the log. */
export interface WireErrorEntry {
  readonly jsonRpcCode: number
  /** Status of the HTTP answer that carries the JSON-RPC error when it is found before a handler has begun to answer. */
  readonly httpStatus: number
  readonly text: string
  readonly meaning: string
}

/** An error that stays inside a process: it reaches people through logs, conditions and exit messages only. */
export interface InternalErrorEntry {
  readonly meaning: string
}

/**
 * Every code there is. `ErrorCode` is derived from these two tables, so a code that is not listed does not compile, and
 * docs/reference/errors.md is rendered from them. `meaning` is for the caller: what happened, and what to do about it.
 */
export const wireErrors = {
  parse_error: {
    jsonRpcCode: -32700,
    httpStatus: 400,
    text: 'Parse error',
    meaning: 'The request body is not JSON. The client must repair its encoding; sending the same bytes again cannot help.',
  },
  invalid_request: {
    jsonRpcCode: -32600,
    httpStatus: 400,
    text: 'Invalid request',
    meaning: 'The body is JSON but not one JSON-RPC 2.0 message (batches are refused). The client must send a single well-formed message.',
  },
  method_not_found: {
    jsonRpcCode: -32601,
    httpStatus: 404,
    text: 'Method not found',
    meaning: 'The method does not exist here, or belongs to a capability this server does not offer. Ask the server what it offers.',
  },
  invalid_params: {
    jsonRpcCode: -32602,
    httpStatus: 400,
    text: 'Invalid params',
    meaning:
      'The parameters do not fit the method, or name something unknown. Correct them; when a handler finds it, the error comes in-band with HTTP 200.',
  },
  internal_error: {
    jsonRpcCode: -32603,
    httpStatus: 200,
    text: 'Internal error',
    meaning:
      'The handler failed for a reason that is not the fault of the client. The cause is in the log of the server; a retry may help.',
  },
} as const satisfies Record<string, WireErrorEntry>

export const internalErrors = {
  aborted: {
    meaning: 'The work was given up because its caller, or the whole process, is stopping. Nothing to repair; do not retry.',
  },
  bundle_failed: {
    meaning: 'A program could not be bundled from its sources. The message names the file and line; correct it and start again.',
  },
  crd_schema_invalid: {
    meaning: 'The schema of a custom resource cannot be a structural Kubernetes schema. Correct the schema at the path in the message.',
  },
  duration_invalid: {
    meaning: 'A text is not a duration, or lies beyond about 292 years. Write numbers with units, such as "1h30m", "250ms" or "1.5s".',
  },
  in_cluster_config_missing: {
    meaning:
      'The process is not in a pod with a service account: its address variables, token or CA file are missing. Give a kubeconfig instead.',
  },
  kube_response_malformed: {
    meaning:
      'The API server, or something between, answered with what is not the expected JSON. Check the address and any proxy on the way.',
  },
  kube_response_too_large: {
    meaning: 'An answer of the API server went over the size limit and was cut off. Ask for smaller pages or fewer objects.',
  },
  kube_status: {
    meaning:
      'The API server refused the request. The details hold its HTTP status and reason: correct the object, or the rights of the account.',
  },
  kube_unreachable: {
    meaning:
      'No answer from the API server: refused, reset, timed out, or TLS failed. Watches retry by themselves; check address, CA and network.',
  },
  kube_watch_expired: {
    meaning:
      'The resource version to watch from is no longer held by the API server (410). List again and watch from there; caches do so themselves.',
  },
  kubeconfig_invalid: {
    meaning:
      'The kubeconfig cannot be read, or its context, cluster or user is missing or not supported. The message names the file and field.',
  },
  manifest_invalid: {
    meaning: 'A manifest is not YAML, or not a Kubernetes object. The message names the file and the document in it; correct that one.',
  },
  queue_closed: {
    meaning: 'An item was offered to a queue that takes no more because its owner is stopping. The item was not taken; do not retry.',
  },
  queue_full: {
    meaning: 'A bounded queue has no room and its owner chose not to wait. The item was not taken; slow down and try again later.',
  },
  shutdown_timeout: {
    meaning: 'A part of the process did not stop within its share of the drain time and was left behind. Look at what that part waits for.',
  },
  timeout: {
    meaning: 'The work did not end within its time limit and was given up; it may have had an effect. Retry if it is safe to repeat.',
  },
  usage: {
    meaning: 'The command line is wrong: an unknown command or flag, or a missing value. The message says which; see --help.',
  },
} as const satisfies Record<string, InternalErrorEntry>

export type WireErrorCode = keyof typeof wireErrors
export type InternalErrorCode = keyof typeof internalErrors
export type ErrorCode = WireErrorCode | InternalErrorCode
