/** An error that crosses the wire. `text` is all that a client sees; everything else stays in the log. */
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
  // The three codes of revision 2026-07-28. No other code of -32020 to -32099 may ever be sent to its clients: the range belongs to the standard.
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
  // 429 is kept free for a rate-limited call.
  access_denied: {
    jsonRpcCode: 403,
    httpStatus: 403,
    text: 'Unauthorized',
    meaning:
      'The policies of the server do not permit this to the caller. The answer is the same for something that does not exist; the audit log names the policies.',
  },
  unauthenticated: {
    jsonRpcCode: 401,
    httpStatus: 401,
    text: 'Authentication required',
    meaning:
      'The request carries no bearer token, or one that is not accepted. The WWW-Authenticate header of the answer says where to get one.',
  },
  forbidden_host: {
    jsonRpcCode: 4031,
    httpStatus: 403,
    text: 'Host or Origin not allowed',
    meaning:
      'The server does not accept this Host or Origin header: it may be a DNS rebinding attack. Use a name that it accepts, or add the Host to spec.allowedHosts (RunConfig allowed_hosts), the Origin to allowed_origins.',
  },
  insufficient_scope: {
    jsonRpcCode: 4032,
    httpStatus: 403,
    text: 'Insufficient scope',
    meaning:
      'The token is accepted, but the call needs scopes that it does not have. The WWW-Authenticate header of the answer names them; get a token with all of them.',
  },
  login_needed: {
    jsonRpcCode: 4033,
    httpStatus: 403,
    text: 'A login at a provider is needed',
    meaning:
      'The call needs a provider where the user has not logged in. Clients that declared URL elicitation get a link for the user instead of this error; repeat the call after the login.',
  },
  // Revision 2025-11-25 only, and only to clients that declared URL elicitation: never to be sent to a 2026-07-28 client.
  url_elicitation_required: {
    jsonRpcCode: -32042,
    httpStatus: 200,
    text: 'A login at a provider is needed',
    meaning:
      'The call needs a provider where the user has not logged in. The data of the error has a link for the user; repeat the call after the login.',
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
  rate_limited: {
    jsonRpcCode: 429,
    httpStatus: 429,
    text: 'Rate limit exceeded',
    meaning:
      'The server, the user or the tool has reached its limit, and the request was not carried out. Retry after the time in the Retry-After header.',
  },
  backend_protocol_error: {
    jsonRpcCode: 502,
    httpStatus: 502,
    text: 'Backend protocol error',
    meaning: 'The MCP server answered with what the protocol does not allow. The log has the details; the server must be repaired.',
  },
  backend_connection_lost: {
    jsonRpcCode: 5021,
    httpStatus: 502,
    text: 'Connection to the backend lost',
    meaning:
      'The connection to the MCP server, or the server itself, ended before the answer was complete; it may have carried out the request. Retry only if it is safe to repeat.',
  },
  credentials_refused: {
    jsonRpcCode: 5022,
    httpStatus: 502,
    text: 'Credentials refused',
    meaning:
      'The MCP server, or the provider of its tokens, refused the credentials that the proxy presented; the request was not carried out. Correct the credentials in the configuration of the proxy.',
  },
  backend_unavailable: {
    jsonRpcCode: 503,
    httpStatus: 503,
    text: 'Backend unavailable',
    meaning: 'The MCP server cannot be reached, and the request was not carried out. Retry after the time in the Retry-After header.',
  },
  // Sent to clients of revisions up to 2025-11-25 only: those of 2026-07-28 cannot come back to a stream.
  workflow_interrupted: {
    jsonRpcCode: 5035,
    httpStatus: 503,
    text: 'Composite tool interrupted',
    meaning:
      'The replica that ran the composite tool is gone, and nothing is run again by itself. The data of the error has the number of steps that may have run; repeat the call only if that is safe.',
  },
  draining: {
    jsonRpcCode: 5031,
    httpStatus: 503,
    text: 'Shutting down',
    meaning:
      'This process is about to stop and takes no more requests. Retry after the time in the Retry-After header; another one will answer.',
  },
  pipeline_full: {
    jsonRpcCode: 5032,
    httpStatus: 503,
    text: 'Too many requests at once on one connection',
    meaning:
      'The client sent more requests over one connection than may wait there, and this one was not carried out. Wait for answers, or use more connections.',
  },
  credentials_unavailable: {
    jsonRpcCode: 5034,
    httpStatus: 503,
    text: 'Credentials unavailable',
    meaning:
      'The provider of tokens for the MCP server cannot be reached, and the request was not carried out. Retry after the time in the Retry-After header.',
  },
  identity_provider_unavailable: {
    jsonRpcCode: 5033,
    httpStatus: 503,
    text: 'Identity provider unavailable',
    meaning: 'The token cannot be checked, because no identity provider can be asked. Retry after the time in the Retry-After header.',
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
  attach_unavailable: {
    meaning: 'A stdio server in a cluster is spoken to by attaching to its pod, which this runner was not given a way to do.',
  },
  auth_provider_unavailable: {
    meaning:
      'No identity provider could be asked about a token: its keys or its introspection do not answer. The token may be fine; retry later.',
  },
  backend_blocked: {
    meaning: 'The address policy forbids the backend, by its name or by what the name resolves to. Correct the URL, or allow the range.',
  },
  backend_busy: {
    meaning: 'All connections to the backend are in use and its queue is full. The request was not sent; try again a little later.',
  },
  backend_connect_timeout: {
    meaning: 'The backend did not accept a connection in time. The request was not sent; check the address and the network between.',
  },
  backend_dns: {
    meaning: 'The name of the backend does not resolve. The request was not sent; check the host of the URL and the DNS of this machine.',
  },
  backend_protocol: {
    meaning: 'The backend answered with what is not valid HTTP/1.1, or broke its own length. Check that the URL points at an HTTP server.',
  },
  backend_refused: {
    meaning: 'Nothing listens at the address of the backend. The request was not sent; start the backend or correct the port.',
  },
  backend_request_invalid: {
    meaning:
      'The request to the backend cannot be written as HTTP/1.1: a bad path, method or header. Nothing was sent; correct the request.',
  },
  backend_reset: {
    meaning:
      'The connection to the backend broke. It may have acted on the request, as the error says: repeat only what is safe to repeat.',
  },
  backend_response_too_large: {
    meaning: 'The answer of the backend went over the size limit and was cut off. Ask for less, or raise the limit.',
  },
  backend_tls: {
    meaning: 'No trusted TLS connection to the backend. Check its certificate and names, and the CA bundle configured for it.',
  },
  backend_unreachable: {
    meaning: 'There is no route to the backend, or the system refused to connect. The request was not sent; check the network.',
  },
  bad_request: {
    meaning: 'What was asked for cannot be: the message names the part that is wrong.',
  },
  bundle_failed: {
    meaning: 'A program could not be bundled from its sources. The message names the file and line; correct it and start again.',
  },
  ca_bundle_invalid: {
    meaning:
      'A CA bundle holds no certificate, or one that cannot be parsed. The message names the bundle and the entry; correct that one.',
  },
  command_incomplete: {
    meaning:
      'Some of the objects that a command names were not applied, deleted or shown. The lines before say which and why; correct those and repeat the command.',
  },
  conflict: {
    meaning: 'Something else is in the way: a name that is taken, or a thing that is still in use. The message names it.',
  },
  crd_schema_invalid: {
    meaning: 'The schema of a custom resource cannot be a structural Kubernetes schema. Correct the schema at the path in the message.',
  },
  data_folder_failed: {
    meaning:
      'The data folder cannot be read or written: no room, no rights, or a damaged file. The write was not done; repair it and retry.',
  },
  data_folder_in_use: {
    meaning: 'Another process works on the same data folder. Stop it (thv down), or choose another folder with --data-dir.',
  },
  duration_invalid: {
    meaning: 'A text is not a duration, or lies beyond about 292 years. Write numbers with units, such as "1h30m", "250ms" or "1.5s".',
  },
  exec_credential_failed: {
    meaning:
      'The credential plugin that the kubeconfig names could not be run, or gave no usable credentials. Install it as the message says, or run it by hand to see what it prints.',
  },
  forbidden: {
    meaning: 'The caller may not do this, or the thing was made by configuration and is changed there.',
  },
  image_invalid: {
    meaning:
      'The image is not something this runtime can run. Without a cluster write npx://PACKAGE@VERSION, uvx://PACKAGE@VERSION or exec:///path/to/program.',
  },
  image_unavailable: {
    meaning: 'The local node has no program for an image. The message says what to write instead, or what to install.',
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
  lease_lost: {
    meaning:
      'This process no longer holds its lease: it could not renew it in time, or another one took it. Its work was stopped; it competes again by itself.',
  },
  listen_failed: {
    meaning: 'The server cannot listen on its address: in use, not allowed, or not of this machine. Choose another host or port.',
  },
  login_failed: {
    meaning:
      'The user could not be logged in at an authorization server. The message names the server and the step that failed; correct that and log in again.',
  },
  manifest_invalid: {
    meaning: 'A manifest is not YAML, or not a Kubernetes object. The message names the file and the document in it; correct that one.',
  },
  mcp_auth_required: {
    meaning:
      'The MCP server wants credentials, or refuses those it was given (HTTP 401, 403 or 407). Its challenge is in the details; authenticate, then connect again.',
  },
  mcp_error_response: {
    meaning:
      'The MCP server answered a request with a JSON-RPC error. Code and data of that error are in the details; what to do depends on them.',
  },
  mcp_http_status: {
    meaning:
      'The MCP server, or something before it, answered with an HTTP status instead of an MCP message. The details hold it, and the time of Retry-After.',
  },
  mcp_limit: {
    meaning: 'An MCP server wanted more rounds, pages or parallel answers than the client takes. Raise the limit, or repair the server.',
  },
  mcp_no_common_version: {
    meaning: 'The MCP server speaks no protocol revision that this build knows. Update whichever of the two is older.',
  },
  mcp_session_lost: {
    meaning:
      'The MCP server does not know its session any more, and a new one could not help: a call in flight may have been carried out. Retry if that is safe.',
  },
  mcp_stream_broken: {
    meaning:
      'The stream of an MCP server ended before the answer and cannot be resumed. The call may have been carried out; retry if that is safe.',
  },
  message_too_large: {
    meaning: 'One message of a stream went over its size limit and the stream was given up. Raise the limit, or make the sender send less.',
  },
  middleware_unsupported: {
    meaning:
      'The run config asks for middleware that this version does not have, and running without it would leave the server unguarded. Remove the field in the message, or use a version that has the middleware.',
  },
  network_unavailable: {
    meaning:
      'The embedded platform cannot use its loopback addresses: another platform holds them, or none is left. Stop the other one (thv down).',
  },
  not_found: {
    meaning: 'There is no such thing, or the caller may not know of it.',
  },
  package_install_failed: {
    meaning: 'A package could not be installed. The log holds what the installer said; check name, version and network. It is tried again.',
  },
  platform_stopped: {
    meaning: 'No platform runs on the data folder. Start it with "thv up", or name another folder with --data-dir.',
  },
  policy_engine_failed: {
    meaning: 'The thread that reads policies ended or took too long. The policies before stay in force; make the document smaller.',
  },
  process_start_failed: {
    meaning: 'The system could not start the program of the MCP server. Check that it is there, executable, and made for this machine.',
  },
  program_missing: {
    meaning: 'A program that is needed to run the MCP server is not on this machine. The message says which, and how to install it.',
  },
  queue_closed: {
    meaning: 'An item was offered to a queue that takes no more because its owner is stopping. The item was not taken; do not retry.',
  },
  queue_full: {
    meaning: 'A bounded queue has no room and its owner chose not to wait. The item was not taken; slow down and try again later.',
  },
  redis_unavailable: {
    meaning:
      'Redis does not answer: its address, password or certificate is wrong, or it is down. Known sessions and limits go on locally.',
  },
  registry_config_invalid: {
    meaning: 'The configuration of the registry server cannot be used. Each problem has its line; `thv-registry-api validate` shows them.',
  },
  request_body_encoding: {
    meaning: 'The client sent a compressed request body, which is not accepted (415). It must send the body as it is.',
  },
  request_body_too_large: {
    meaning: 'The request body is over the limit (413). The client must send less, or the limit must be raised.',
  },
  request_body_too_slow: {
    meaning: 'The request body came too slowly and was given up (408). The client may send it again over a better connection.',
  },
  run_config_invalid: {
    meaning: 'The run config is not JSON, or not a run config. The message names the file and each field with what is expected there.',
  },
  run_config_missing: {
    meaning: 'There is no run config, or it cannot be read. Give its path with --config, or put it where the message says.',
  },
  run_config_stale: {
    meaning:
      'The mounted run config did not become the one this pod was started for within the time limit. The pod tries again; if it stays so, look at the ConfigMap.',
  },
  runtime_unsuitable: {
    meaning: 'The run config asks for what the chosen runtime cannot do. The message names the field; change it or choose another runtime.',
  },
  shutdown_timeout: {
    meaning: 'A part of the process did not stop within its share of the drain time and was left behind. Look at what that part waits for.',
  },
  source_blocked: {
    meaning:
      'A source of the registry leads to an address that may not be fetched, such as a private or metadata address or another scheme.',
  },
  source_failed: {
    meaning: 'A source of the registry could not be read; its last good data are served, and it is tried again.',
  },
  source_limit: {
    meaning: 'A source of the registry is larger, deeper or slower than its limits allow.',
  },
  stdio_capacity: {
    meaning: 'There are as many connections to the stdio server as there can be. Close one, or raise stdio_max_processes.',
  },
  store_schema: {
    meaning: 'The database of the registry is not of the version that this program knows; the message says which `migrate` to run.',
  },
  store_unavailable: {
    meaning: 'The database of the registry does not answer, or cannot be written. Reads go on from memory.',
  },
  stream_closed: {
    meaning: 'The other end of a stream or pipe is gone, so the message was not written. Look at why the process or connection ended.',
  },
  timeout: {
    meaning: 'The work did not end within its time limit and was given up; it may have had an effect. Retry if it is safe to repeat.',
  },
  tool_failed: {
    meaning:
      'A tool was called and reported that it failed. What it said was printed before; correct the arguments, or repair what it works on.',
  },
  usage: {
    meaning: 'The command line is wrong: an unknown command or flag, or a missing value. The message says which; see --help.',
  },
  version_exists: {
    meaning: 'This version of this server is published already; publish another version, or edit this one.',
  },
  workload_foreign: {
    meaning:
      'A StatefulSet or Service of the name that the MCP server needs exists already, and this server did not make it. Rename the server, or delete the object.',
  },
  vmcp_config_invalid: {
    meaning:
      'The configuration file of a virtual server is not YAML, or not such a file. The message names each field with what is expected there.',
  },
  vmcp_config_unsupported: {
    meaning: 'The configuration file of a virtual server asks for something that this version does not have. The message names each field.',
  },
} as const satisfies Record<string, InternalErrorEntry>

export type WireErrorCode = keyof typeof wireErrors
export type InternalErrorCode = keyof typeof internalErrors
export type ErrorCode = WireErrorCode | InternalErrorCode
