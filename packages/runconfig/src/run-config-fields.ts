import { auditReader } from './audit-config.ts'
import { authServerReader } from './auth-server-fields.ts'
import type { FieldTable } from './field.ts'
import {
  AUTHZ_FIELDS,
  AWS_STS_FIELDS,
  HEADER_INJECTION_FIELDS,
  OIDC_FIELDS,
  RATE_LIMIT_FIELDS,
  REMOTE_AUTH_FIELDS,
  TOKEN_EXCHANGE_FIELDS,
  UPSTREAM_SWAP_FIELDS,
  WEBHOOK_FIELDS,
} from './policy-config.ts'
import {
  ERAS,
  type HeaderForward,
  type MiddlewareConfig,
  type Owner,
  PROXY_MODES,
  type RedisSentinel,
  type RedisTls,
  type RemotePolicy,
  type RunConfig,
  type ScalingConfig,
  type SessionRedis,
  STDIO_ISOLATIONS,
  type ToolOverride,
  TRANSPORTS,
} from './run-config.ts'
import { TELEMETRY_FIELDS } from './telemetry-config.ts'
import {
  addressRange,
  anyObject,
  durationText,
  flag,
  httpUrl,
  integer,
  listOf,
  mapOf,
  objectOf,
  objectOrJsonText,
  oneOf,
  text,
} from './value-readers.ts'

export const SCHEMA_VERSION = 'v0.1.0'

const port = integer({ min: 0, max: 65_535 })
const label = text({
  like: {
    test: (value) => value.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(value),
    words: 'a name of at most 63 lower-case letters, digits and dashes',
  },
})
const variable = text({
  like: {
    test: (value) => /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(value),
    words: 'a name of letters, digits, _, . and -, not beginning with a digit',
  },
})
const headerName = text({
  like: { test: (value) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value), words: 'a name that an HTTP header can have' },
})
const headerValue = text({ allowEmpty: true, like: { test: (value) => !/[\r\n]/.test(value), words: 'a text of one line' } })
const toolName = text({ like: { test: (value) => !/[,\r\n]/.test(value), words: 'a name without comma and line end' } })
const host = text({ like: { test: (value) => /^[A-Za-z0-9.:_[\]%-]+$/.test(value), words: 'a host name or address' } })
const origin = text({
  like: { test: isOrigin, words: 'an origin: scheme, host and port without a path, such as https://app.example.com' },
})
const hostWithoutPort = text({
  like: { test: isHostWithoutPort, words: 'a host name or address without a port, an IPv6 address in brackets' },
})
const serviceHost = text({
  like: { test: (value) => /^([a-z0-9-]+\.){2}svc(\.[a-z0-9-]+)+$/.test(value), words: 'NAME.NAMESPACE.svc.DOMAIN in lower case' },
})
const volume = text({ like: { test: isVolume, words: 'HOST_PATH:MOUNT_PATH or HOST_PATH:MOUNT_PATH:ro, both paths absolute' } })
const publishedPort = text({ like: { test: isPublishedPort, words: 'HOST_PORT:CONTAINER_PORT' } })
const secretReference = text({
  like: { test: (value) => /^[^,\s]+,target=[A-Za-z_][A-Za-z0-9_]*$/.test(value), words: 'NAME,target=VARIABLE' },
})

const OWNER_FIELDS: FieldTable<Owner> = {
  api_version: { reader: text(), required: true, doc: 'Such as `toolhive.stacklok.dev/v1beta1`.' },
  kind: { reader: text(), required: true, doc: 'Such as `MCPServer`.' },
  name: { reader: text(), required: true, doc: 'Its name.' },
  uid: { reader: text(), required: true, doc: 'Its uid: another object of the same name is another owner.' },
}

const REMOTE_POLICY_FIELDS: FieldTable<RemotePolicy> = {
  deny_private: { reader: flag, default: false, doc: 'Whether private addresses are refused.' },
  allow_private: { reader: flag, default: false, doc: 'The exception for this server.' },
  allow_loopback: { reader: flag, default: false, doc: 'Whether this machine may be called.' },
}

const HEADER_FORWARD_FIELDS: FieldTable<HeaderForward> = {
  add_plaintext_headers: { reader: mapOf(headerValue, headerName), default: {}, doc: 'Header name to value.' },
  add_headers_from_secret: {
    reader: mapOf(text(), headerName),
    default: {},
    doc: 'Header name to secret: the variable `TOOLHIVE_SECRET_` + name holds the value.',
  },
}

const redisAddress = text({
  like: {
    test: (value) => /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):\d{1,5}$/.test(value),
    words: 'host and port, such as redis:6379, without scheme and password',
  },
})

const REDIS_SENTINEL_FIELDS: FieldTable<RedisSentinel> = {
  master_name: { reader: text(), required: true, doc: 'Name under which the Sentinels watch the primary.' },
  addresses: {
    reader: listOf(redisAddress),
    required: true,
    doc: 'Hosts and ports of the Sentinels. The variable `THV_SESSION_SENTINEL_PASSWORD` holds their password.',
  },
}

const REDIS_TLS_FIELDS: FieldTable<RedisTls> = {
  enabled: { reader: flag, default: false, doc: 'Whether Redis and its Sentinels are reached by TLS.' },
  ca_path: { reader: text(), doc: 'File with further certificate authorities.' },
}

const SESSION_REDIS_FIELDS: FieldTable<SessionRedis> = {
  address: { reader: redisAddress, doc: 'Host and port of Redis. Set this or `sentinel`.' },
  sentinel: { reader: objectOf(REDIS_SENTINEL_FIELDS), doc: 'Finds the primary of a Redis with failover.' },
  db: { reader: integer({ min: 0 }), default: 0, doc: 'Number of the database.' },
  key_prefix: { reader: text(), doc: 'Put before the keys of sessions. A colon is added unless it ends with one.' },
  username: { reader: text(), doc: 'ACL user. The variable `THV_SESSION_REDIS_PASSWORD` holds the password.' },
  tls: { reader: objectOf(REDIS_TLS_FIELDS), doc: 'TLS to Redis.' },
}

const SCALING_FIELDS: FieldTable<ScalingConfig> = {
  backend_replicas: {
    reader: integer({ min: 0 }),
    doc: 'Pods of the server. Absent: the runner does not touch the number, so that an autoscaler can.',
  },
  pods_per_runner: {
    reader: integer({ min: 1 }),
    doc: 'Pods of a stdio server that one of several runners attaches to at most. Absent: all.',
  },
  session_redis: { reader: objectOf(SESSION_REDIS_FIELDS), doc: 'Where sessions are kept when several runners share them.' },
}

const TOOL_OVERRIDE_FIELDS: FieldTable<ToolOverride> = {
  name: { reader: toolName, doc: 'Name that clients see.' },
  description: { reader: text(), doc: 'Description that clients see.' },
  annotations: { reader: anyObject, doc: 'Annotations that clients see, each instead of the one of the server.' },
}

const MIDDLEWARE_FIELDS: FieldTable<MiddlewareConfig> = {
  type: { reader: text(), required: true, doc: 'Name of a middleware.' },
  parameters: { reader: anyObject, doc: 'What it is given.' },
}
const middlewares = listOf(objectOf(MIDDLEWARE_FIELDS))

/** The one table of what a RunConfig can say: it drives the reader, the reference and the tests. */
export const RUN_CONFIG_FIELDS: FieldTable<RunConfig> = {
  schema_version: { reader: oneOf([SCHEMA_VERSION]), default: SCHEMA_VERSION, doc: 'Version of this document.' },
  mcpserver_generation: {
    reader: integer({ min: 0 }),
    default: 0,
    doc: 'Counts the changes of this document. A runner never overwrites what one with a greater number applied. The variable `THV_MCPSERVER_GENERATION` wins over it.',
  },
  owner: { reader: objectOf(OWNER_FIELDS), doc: 'The object that the StatefulSet and its Services belong to.' },

  name: { reader: label, required: true, doc: 'Name of the server.' },
  container_name: { reader: label, defaultText: '`name`', doc: 'Name of the StatefulSet.' },
  base_name: { reader: label, defaultText: '`container_name`', doc: 'Name without additions.' },
  group: { reader: text(), doc: 'Group that the server belongs to. For information.' },
  debug: { reader: flag, default: false, doc: 'Whether details are logged.' },

  image: {
    reader: text({ allowEmpty: true }),
    default: '',
    defaultText: '',
    doc: 'Container image; without a cluster `npx://PACKAGE@VERSION`, `uvx://PACKAGE@VERSION` or `exec:///path/to/program`. Required without `remote_url`.',
  },
  cmd_args: { reader: listOf(text({ allowEmpty: true })), default: [], doc: 'Arguments of the server.' },
  env_vars: { reader: mapOf(text({ allowEmpty: true }), variable), default: {}, doc: 'Variables of the server.' },
  env_file_dir: { reader: text(), doc: 'Folder whose files hold further variables as `KEY=VALUE` lines. They win over `env_vars`.' },
  secrets: {
    reader: listOf(secretReference),
    default: [],
    doc: 'Without a cluster: `NAME,target=VARIABLE` gives the server the value of `TOOLHIVE_SECRET_NAME` as VARIABLE. In a cluster, secrets are set in the pod patch.',
  },

  remote_url: { reader: httpUrl(), doc: 'Address of a server that runs elsewhere. Nothing is started then.' },
  remote_ca_bundle_path: { reader: text(), doc: 'File with the certificate authorities of the remote server.' },
  remote_policy: {
    reader: objectOf(REMOTE_POLICY_FIELDS),
    default: { deny_private: false, allow_private: false, allow_loopback: false },
    doc: 'Which addresses the remote server may have.',
  },
  remote_auth_config: { reader: objectOf(REMOTE_AUTH_FIELDS), doc: 'How to authenticate at the remote server.' },
  header_forward: { reader: objectOf(HEADER_FORWARD_FIELDS), doc: 'Headers to add to requests to the remote server.' },

  transport: { reader: oneOf(TRANSPORTS, { anyCase: true }), required: true, doc: 'What the server speaks.' },
  proxy_mode: {
    reader: oneOf(PROXY_MODES, { anyCase: true }),
    defaultText: '`streamable-http` for stdio, else `transport`',
    doc: 'What clients of a stdio server speak; `sse` is deprecated. For other transports it is always the transport.',
  },
  host: { reader: host, default: '127.0.0.1', doc: 'Address that the proxy listens on.' },
  port: { reader: port, default: 8080, doc: 'Port that the proxy listens on; 0 for any free one.' },
  target_host: {
    reader: host,
    doc: 'Address that the server in the pod listens on: `MCP_HOST`. Without a cluster it is always 127.0.0.1.',
  },
  target_port: {
    reader: port,
    default: 0,
    doc: 'Port that the server listens on: `MCP_PORT`. Without a cluster 0 chooses a free one.',
  },
  era: { reader: oneOf(ERAS), default: 'auto', doc: 'Which revisions of MCP the server is spoken to in.' },
  stdio_isolation: {
    reader: oneOf(STDIO_ISOLATIONS),
    default: 'auto',
    doc: 'Whether sessions of a stdio server share a process. `auto`: those that offer sampling, elicitation or roots get their own.',
  },
  stdio_max_processes: { reader: integer({ min: 1, max: 1_000 }), default: 8, doc: 'Processes that sessions may have of their own.' },
  allowed_origins: { reader: listOf(origin), default: [], doc: 'Origins that browsers may call from.' },
  allowed_hosts: {
    reader: listOf(hostWithoutPort),
    default: [],
    doc: 'Host names that clients may address the proxy by, besides loopback names, its own address and its cluster names. Empty: any host, except on a loopback address.',
  },
  service_hosts: {
    reader: listOf(serviceHost),
    default: [],
    doc: 'Full names of the Services in front of the proxy, `NAME.NAMESPACE.svc.DOMAIN`. Where hosts are checked, these and their short forms are accepted.',
  },
  trust_proxy_headers: { reader: flag, default: false, doc: 'Whether `X-Forwarded-*` of requests is believed.' },
  trusted_proxies: {
    reader: listOf(addressRange),
    default: [],
    doc: 'Proxies in front of this one. With `trust_proxy_headers` the client address is the last entry of `X-Forwarded-For` that is none of them.',
  },
  endpoint_prefix: {
    reader: text({ like: { test: (value) => /^\/[^\s?#]*$/.test(value), words: 'a path that begins with /' } }),
    doc: 'What paths in SSE endpoint events begin with.',
  },
  strict_protocol_validation: {
    reader: flag,
    default: false,
    doc: 'Reject unknown values of `MCP-Protocol-Version` on everything but `initialize`. Otherwise only on calls, which need the version.',
  },
  stateless: { reader: flag, default: false, doc: 'Whether the server takes only POST.' },
  session_ttl: { reader: durationText('2h'), default: '2h', doc: 'How long an unused session lives.' },

  container_labels: { reader: mapOf(text({ allowEmpty: true })), default: {}, doc: 'Labels of the objects in the cluster.' },
  volumes: { reader: listOf(volume), default: [], doc: 'Folders of the node to mount, as `HOST_PATH:MOUNT_PATH[:ro]`. In a cluster only.' },
  publish: {
    reader: listOf(publishedPort),
    default: [],
    doc: 'Further ports, as `HOST_PORT:CONTAINER_PORT`. In a cluster only. A host port from 30000 to 32767 opens the server on every node, past the proxy.',
  },
  permission_profile: {
    reader: anyObject,
    doc: 'What the server may reach. The operator turns it into a NetworkPolicy; the runner does not.',
  },
  permission_profile_name_or_path: { reader: text(), doc: 'Where the profile came from. For information.' },
  isolate_network: { reader: flag, default: false, doc: 'Asks for a network of its own.' },
  k8s_pod_template_patch: {
    reader: objectOrJsonText,
    doc: 'A PodTemplateSpec that the pods of the server are made from, as an object or as JSON inside a text.',
  },
  scaling_config: { reader: objectOf(SCALING_FIELDS), default: {}, doc: 'Numbers of pods, and where they share state.' },

  tools_filter: { reader: listOf(toolName), default: [], doc: 'Tools that clients see, by the names that clients see. Empty for all.' },
  tools_override: {
    reader: mapOf(objectOf(TOOL_OVERRIDE_FIELDS), toolName),
    default: {},
    doc: 'Name of a tool on the server to what clients see.',
  },
  oidc_config: { reader: objectOf(OIDC_FIELDS, { anySpelling: true }), doc: 'Who may call. Keys may also be written as in `JWKSURL`.' },
  thv_ca_bundle: { reader: text(), doc: 'Another place for `oidc_config.ca_cert_path`; both must be equal.' },
  jwks_auth_token_file: { reader: text(), doc: 'Another place for `oidc_config.auth_token_file`; both must be equal.' },
  authz_config: { reader: objectOf(AUTHZ_FIELDS), doc: 'Authorization policies.' },
  authz_config_path: { reader: text(), doc: 'File that holds it; `authz_config` wins.' },
  authz_primary_upstream_provider: {
    reader: text(),
    doc: 'Must be `cedar.primary_upstream_provider` of the policies. Changes of the file alone are taken over while the proxy runs, and this one needs another start.',
  },
  audit_config: {
    reader: auditReader,
    doc: 'Audit events. Keys may also be written as in `maxDataSize`.',
  },
  audit_config_path: { reader: text(), doc: 'File that holds it; `audit_config` wins.' },
  telemetry_config: {
    reader: objectOf(TELEMETRY_FIELDS, { anySpelling: true }),
    doc: 'Traces and metrics. Keys may also be written as in `serviceName`.',
  },
  rate_limit_config: {
    reader: objectOf(RATE_LIMIT_FIELDS, { anySpelling: true }),
    doc: 'Limits of calls. Keys may also be written as in `maxTokens`.',
  },
  rate_limit_namespace: { reader: text(), doc: 'What keeps limits of servers of the same name apart.' },
  token_exchange_config: { reader: objectOf(TOKEN_EXCHANGE_FIELDS), doc: 'Exchanges the token of the caller for one of the server.' },
  upstream_swap_config: { reader: objectOf(UPSTREAM_SWAP_FIELDS), doc: 'Sends the token of an upstream provider to the server.' },
  header_injection_config: { reader: objectOf(HEADER_INJECTION_FIELDS), doc: 'Sends a secret in a header to the server.' },
  aws_sts_config: { reader: objectOf(AWS_STS_FIELDS), doc: 'Signs requests to a remote server for AWS.' },
  embedded_auth_server_config: { reader: authServerReader, doc: 'An authorization server inside the runner. Unknown members are errors.' },
  validating_webhooks: { reader: listOf(objectOf(WEBHOOK_FIELDS)), default: [], doc: 'Who is asked whether a request may pass.' },
  mutating_webhooks: { reader: listOf(objectOf(WEBHOOK_FIELDS)), default: [], doc: 'Who may change a request.' },
  middleware_configs: {
    reader: middlewares,
    default: [],
    doc: 'The middleware list as ToolHive (Go) writes it. An entry must say the same as the fields above.',
  },
  additional_middleware_configs: { reader: middlewares, default: [], doc: 'As `middleware_configs`.' },
}

function isOrigin(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { origin: parsed, username, password } = new URL(value)
  return parsed !== 'null' && username === '' && password === '' && value.toLowerCase() === parsed.toLowerCase()
}

function isHostWithoutPort(value: string): boolean {
  return /^(\[[0-9a-f:.]+\]|\w([\w-]*\w)?(\.\w([\w-]*\w)?)*)$/i.test(value) && value.length <= 253 && URL.canParse(`http://${value}/`)
}

function isVolume(value: string): boolean {
  const parts = value.split(':')
  const [hostPath = '', mountPath = '', mode] = parts
  return hostPath.startsWith('/') && mountPath.startsWith('/') && (parts.length === 2 || (parts.length === 3 && mode === 'ro'))
}

function isPublishedPort(value: string): boolean {
  const parts = value.split(':')
  return parts.length === 2 && parts.every((part) => /^\d{1,5}$/.test(part) && Number(part) >= 1 && Number(part) <= 65_535)
}
