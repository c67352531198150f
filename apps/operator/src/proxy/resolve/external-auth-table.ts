import { AUTH_TYPES, type AuthType } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import { MCPServerEntryReason } from '@thv/resources/kinds/mcp-server-entry/constants'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { RunConfig } from '@thv/runconfig/run-config'

/** Kinds that can name an MCPExternalAuthConfig with `externalAuthConfigRef`. */
export const AUTH_CONSUMERS = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry'] as const
export type AuthConsumer = (typeof AUTH_CONSUMERS)[number]

export type AuthEffect =
  /** Requests go out as they are. */
  | { readonly effect: 'nothing'; readonly note: string }
  /** The proxy does it: the one member of the RunConfig that asks for it, and the variables that carry its secrets. */
  | { readonly effect: 'runConfig'; readonly field: keyof RunConfig; readonly variables: readonly string[]; readonly note: string }
  /** The VirtualMCPServer that uses the entry does it. */
  | { readonly effect: 'virtualServer'; readonly note: string }
  /** The combination makes no sense or no sense here: the workload does not start. `note` says what to do instead. */
  | { readonly effect: 'rejected'; readonly reason: string; readonly note: string }

export const TOKEN_EXCHANGE_SECRET = 'TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET'
export const HEADER_VALUE = 'TOOLHIVE_HEADER_INJECTION_VALUE'
export const HEADER_TOKEN = 'TOOLHIVE_HEADER_INJECTION_TOKEN'
/** Followed by the name of the Secret. */
export const NAMED_SECRET_PREFIX = 'TOOLHIVE_SECRET_'

const byVirtualServer: AuthEffect = { effect: 'virtualServer', note: 'the VirtualMCPServer that uses the entry does it' }

/** The effect of each type of MCPExternalAuthConfig on each kind: resolvers use it, and the reference page is made from it. */
export const EXTERNAL_AUTH_TABLE: Readonly<Record<AuthType, Readonly<Record<AuthConsumer, AuthEffect>>>> = {
  unauthenticated: everywhere({ effect: 'nothing', note: 'requests carry no credentials' }),
  tokenExchange: {
    ...proxies({
      effect: 'runConfig',
      field: 'token_exchange_config',
      variables: [TOKEN_EXCHANGE_SECRET],
      note: "the caller's token is exchanged; subjectProviderName needs authServerRef with a provider of that name",
    }),
    MCPServerEntry: byVirtualServer,
  },
  headerInjection: {
    ...proxies({
      effect: 'runConfig',
      field: 'header_injection_config',
      variables: [HEADER_VALUE],
      note: 'the header is set on every request to the server',
    }),
    MCPServerEntry: byVirtualServer,
  },
  bearerToken: {
    MCPServer: {
      effect: 'runConfig',
      field: 'header_injection_config',
      variables: [HEADER_TOKEN, HEADER_VALUE],
      note: 'the same as headerInjection of Authorization: the kubelet puts Bearer before the token',
    },
    MCPRemoteProxy: {
      effect: 'runConfig',
      field: 'remote_auth_config',
      variables: [`${NAMED_SECRET_PREFIX}<Secret name>`],
      note: 'the token is sent to the remote server',
    },
    MCPServerEntry: byVirtualServer,
  },
  clientCredentials: {
    ...proxies({
      effect: 'runConfig',
      field: 'remote_auth_config',
      variables: [`${NAMED_SECRET_PREFIX}<Secret name>`],
      note: 'the proxy gets a token of its own, which is sent for all callers',
    }),
    MCPServerEntry: byVirtualServer,
  },
  awsSts: {
    MCPServer: {
      effect: 'rejected',
      reason: WorkloadReason.InvalidConfig,
      note: 'AWS signatures are for remote servers: use an MCPRemoteProxy',
    },
    MCPRemoteProxy: {
      effect: 'runConfig',
      field: 'aws_sts_config',
      variables: [],
      note: "requests are signed; needs oidcConfig, because the role goes by the caller's claims",
    },
    MCPServerEntry: byVirtualServer,
  },
  upstreamInject: {
    ...proxies({
      effect: 'runConfig',
      field: 'upstream_swap_config',
      variables: [],
      note: 'needs authServerRef to an embedded server with the provider of that name',
    }),
    MCPServerEntry: byVirtualServer,
  },
  oidc: {
    ...proxies({
      effect: 'rejected',
      reason: WorkloadReason.InvalidConfig,
      note: 'it says how clients authenticate: name it in oidcConfig.external',
    }),
    MCPServerEntry: {
      effect: 'rejected',
      reason: MCPServerEntryReason.AuthConfigTypeNotSupported,
      note: 'an entry has no clients of its own: use incomingAuth of the VirtualMCPServer',
    },
  },
  embeddedAuthServer: {
    ...proxies({
      effect: 'runConfig',
      field: 'embedded_auth_server_config',
      variables: [],
      note: 'clients log in at the proxy; needs oidcConfig with the same issuer, and its audience equal to its resource URL',
    }),
    MCPServerEntry: {
      effect: 'rejected',
      reason: MCPServerEntryReason.AuthConfigTypeNotSupported,
      note: 'an entry has no proxy that users could log in to: use authServerConfig of the VirtualMCPServer, and upstreamInject here',
    },
  },
}

/** Types that set a header, which a server that speaks stdio never gets. */
export const HEADER_TYPES: ReadonlySet<AuthType> = new Set([
  'tokenExchange',
  'headerInjection',
  'bearerToken',
  'clientCredentials',
  'upstreamInject',
])

function proxies(effect: AuthEffect): Record<'MCPServer' | 'MCPRemoteProxy', AuthEffect> {
  return { MCPServer: effect, MCPRemoteProxy: effect }
}

function everywhere(effect: AuthEffect): Record<AuthConsumer, AuthEffect> {
  return { ...proxies(effect), MCPServerEntry: effect }
}

/** The whole text of docs/reference/external-auth.md. Pure: a test compares it with the file. */
export function renderExternalAuthReference(): string {
  const rows = AUTH_TYPES.map((type) => {
    const { MCPServer: server, MCPRemoteProxy: proxy, MCPServerEntry: entry } = EXTERNAL_AUTH_TABLE[type]
    return [`\`${type}\``, cell(server), proxy === server ? 'the same' : cell(proxy), entry === server ? 'the same' : cell(entry)]
  })
  return `${[
    '# External authentication',
    '<!-- Made by `npm run generate` from apps/operator/src/proxy/resolve/external-auth-table.ts. -->',
    INTRODUCTION,
    table(['type', ...AUTH_CONSUMERS], rows),
    NOTES,
  ].join('\n\n')}\n`
}

const INTRODUCTION = `An MCPExternalAuthConfig says how requests to a server are authenticated. A workload names it with \`externalAuthConfigRef\`. This is what
each type does there. A combination that is refused, a Secret or key that is missing, or an invalid configuration stops the workload with the
condition \`ExternalAuthConfigValidated=False\`: it never runs with less than was asked for.`

const NOTES = `\`authServerRef\` of an MCPServer or MCPRemoteProxy names a configuration of type \`embeddedAuthServer\` that clients log in to; \`externalAuthConfigRef\`
is then free for the way to the server. Both naming an embedded server is refused. Its condition is \`AuthServerRefValidated\`. With several upstream
providers users log in to each in turn; the server gets the token of the provider that \`upstreamInject.providerName\` names, else that of the first.
Where no Secrets with keys are named, the operator makes them (\`SigningKeysManaged\`). With \`storage.type: memory\` there is one replica
(\`AuthServerReplicaCapped\`).

## How clients authenticate: \`oidcConfig.external\`

\`oidcConfig\` of an MCPServer or MCPRemoteProxy with \`type: external\` takes its settings from the MCPExternalAuthConfig that \`external.name\`
names, so that many workloads share one. \`resourceUrl\` belongs to one workload and stays on its own \`oidcConfig\`.

- Type \`oidc\` has the members of \`oidcConfig.inline\`. A missing or broken CA bundle shows on the workload (\`CABundleRefValidated\`).
- Type \`embeddedAuthServer\` means the same as \`authServerRef\` to it and an inline OIDC with its issuer, and with \`resourceUrl\` as audience. An
  \`authServerRef\` beside it must name the same configuration.
- Any other type is about requests to the server: the workload does not run, condition \`ConfigurationValid=False\`, reason \`NotIncomingAuth\`.

\`external\` and \`externalAuthConfigRef\` are separate fields and may name different configurations.

## Limits

- An MCPServer that speaks stdio gets no headers, so ${[...HEADER_TYPES].map((type) => `\`${type}\``).join(', ')} are refused there: use \`secrets\` of the MCPServer.
- \`disableUpstreamTokenInjection\` of the embedded server beside \`tokenExchange\`, \`awsSts\` or \`upstreamInject\` is refused: there would be no token to use.
- Secrets reach the proxy as variables or files and are never in a RunConfig. When one changes, the pods are replaced, but not for those of the
  embedded server (keys, HMAC secrets, client secrets, the user, password and CA of Redis): it reads their files again.`

function cell(effect: AuthEffect): string {
  if (effect.effect === 'nothing' || effect.effect === 'virtualServer') return effect.note
  if (effect.effect === 'rejected') return `refused, \`${effect.reason}\`: ${effect.note}`
  const variables = effect.variables.map((name) => `\`${name}\``).join(', ')
  return `RunConfig \`${effect.field}\`${variables === '' ? '' : `, variable ${variables}`}: ${effect.note}`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
