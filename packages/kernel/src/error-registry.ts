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
  // The three codes of revision 2026-07-28. No other code of -32020 to -32099 may ever be sent: the range belongs to the standard.
  header_mismatch: {
    jsonRpcCode: -32020,
    httpStatus: 400,
    text: 'Header mismatch',
    meaning:
      'A header that must repeat a part of the body is missing, malformed or different. The client must derive it from the body it sends.',
  },
  missing_client_capability: {
    jsonRpcCode: -32021,
    httpStatus: 400,
    text: 'Missing required client capability',
    meaning:
      'The request needs something that the client did not declare; the data of the error names it. Declare the capability, if it is there, and retry.',
  },
  unsupported_protocol_version: {
    jsonRpcCode: -32022,
    httpStatus: 400,
    text: 'Unsupported protocol version',
    meaning: 'The protocol version of the request is not served here. The data of the error lists the versions to choose from.',
  },
  // Sessions exist in the revisions up to 2025-11-25 only, and so do these two codes: never to be sent to a 2026-07-28 client.
  session_required: {
    jsonRpcCode: -32000,
    httpStatus: 400,
    text: 'Session required',
    meaning: 'The request belongs to a session but carries no Mcp-Session-Id header. Send the one that came with the initialize result.',
  },
  session_not_found: {
    jsonRpcCode: -32001,
    httpStatus: 404,
    text: 'Session not found',
    meaning: 'The session has ended, has expired, or is not of this caller. The client must initialize a new one, without the old header.',
  },
  // Codes of our own stand outside -32768 to -32000: the HTTP status where one error alone has it, else the status and one more digit.
  // 403 and 429 are kept free for a denied and a rate-limited call.
  forbidden_host: {
    jsonRpcCode: 4031,
    httpStatus: 403,
    text: 'Host or Origin not allowed',
    meaning:
      'The Host or Origin header is not on the list of this server, as in a DNS rebinding attack. Use an allowed name, or add it to the list.',
  },
  method_not_allowed: {
    jsonRpcCode: 405,
    httpStatus: 405,
    text: 'HTTP method not allowed',
    meaning: 'The endpoint does not take this HTTP method. The Allow header of the answer lists those it takes.',
  },
  not_acceptable: {
    jsonRpcCode: 406,
    httpStatus: 406,
    text: 'Not acceptable',
    meaning: 'The Accept header leaves no form to answer in. A POST must accept application/json and text/event-stream, a GET the latter.',
  },
  body_too_large: {
    jsonRpcCode: 413,
    httpStatus: 413,
    text: 'Body too large',
    meaning: 'The body of the request goes over the size limit of the server and was not read to its end. Send less at once.',
  },
  unsupported_media_type: {
    jsonRpcCode: 415,
    httpStatus: 415,
    text: 'Unsupported media type',
    meaning: 'The body is not declared as application/json in UTF-8, or is compressed. Send it so.',
  },
  backend_protocol_error: {
    jsonRpcCode: 502,
    httpStatus: 502,
    text: 'Backend protocol error',
    meaning: 'The MCP server answered with what the protocol does not allow. The log has the details; the server must be repaired.',
  },
  backend_unavailable: {
    jsonRpcCode: 503,
    httpStatus: 503,
    text: 'Backend unavailable',
    meaning: 'The MCP server cannot be reached, and the request was not carried out. Retry after the time in the Retry-After header.',
  },
  draining: {
    jsonRpcCode: 5031,
    httpStatus: 503,
    text: 'Shutting down',
    meaning:
      'This process is about to stop and takes no more requests. Retry after the time in the Retry-After header; another one will answer.',
  },
  backend_timeout: {
    jsonRpcCode: 504,
    httpStatus: 504,
    text: 'Backend timeout',
    meaning:
      'The MCP server did not answer within the time limit; it may have carried out the request. Retry only if it is safe to repeat.',
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
  message_too_large: {
    meaning: 'One message of a stream went over its size limit and the stream was given up. Raise the limit, or make the sender send less.',
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
  stream_closed: {
    meaning: 'The other end of a stream or pipe is gone, so the message was not written. Look at why the process or connection ended.',
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
