import { type CelRule, sameIfBoth } from '../../schema/cel.ts'
import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf, WORKLOAD_NAME_RULES } from '../../schema/kind-definition.ts'
import { bool, nameOrRef, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { auditConfig } from '../../shared/audit-config.ts'
import { authzConfigWithCandidate } from '../../shared/authz-config.ts'
import { caBundleRef } from '../../shared/ca-bundle-ref.ts'
import { headerForward, noAuthorizationBesideExternalAuth } from '../../shared/header-forward.ts'
import { oidcConfig } from '../../shared/oidc-config.ts'
import { anyPerUser, rateLimiting } from '../../shared/rate-limiting.ts'
import { resourceOverrides } from '../../shared/resource-overrides.ts'
import { sessionStorage } from '../../shared/session-storage.ts'
import { telemetryConfig } from '../../shared/telemetry-config.ts'
import * as fields from '../../shared/workload-fields.ts'
import { workloadStatus } from '../../shared/workload-status.ts'
import { MCPRemoteProxyCondition, MCPRemoteProxyPhase } from './constants.ts'

const remoteUrl = (description: string) => str(description, { maxLength: 2048, pattern: '^https?://' })

const rules: readonly CelRule[] = [
  { rule: 'has(self.remoteUrl) || has(self.remoteURL)', message: 'remoteUrl must be set', reason: 'FieldValueRequired' },
  sameIfBoth('remoteUrl', 'remoteURL'),
  sameIfBoth('proxyPort', 'port'),
  noAuthorizationBesideExternalAuth,
  {
    rule: `!has(self.rateLimiting) || !${anyPerUser('self.rateLimiting')} || has(self.oidcConfig) || has(self.authServerRef)`,
    message: 'limits per user need to know the user: set oidcConfig or authServerRef',
    fieldPath: '.rateLimiting',
  },
]

const spec = obj(
  'The remote MCP server and how clients reach it.',
  {
    remoteUrl: opt(remoteUrl('URL of the remote MCP server. This field or remoteURL must be set.')),
    remoteURL: opt(remoteUrl('Another spelling of remoteUrl.')),
    allowPrivateEndpoint: opt(bool('Whether the URL may lead to a private address although the operator forbids it.', { default: false })),
    transport: opt(oneOf('Transport of the remote server.', ['sse', 'streamable-http'], { default: 'streamable-http' })),
    caBundleRef: opt(caBundleRef('Certificates to trust, besides those of the system, when connecting to the remote server.')),
    headerForward: opt(headerForward()),
    proxyPort: opt(fields.proxyPort()),
    port: opt(fields.deprecatedPort()),
    resources: opt(fields.resources('proxy')),
    podTemplateSpec: opt(fields.podTemplateSpec('toolhive')),
    resourceOverrides: opt(resourceOverrides()),
    serviceAccount: opt(fields.serviceAccount('ServiceAccount of the proxy; by default one without any rights is made.')),
    groupRef: opt(nameOrRef('MCPGroup that the server belongs to.')),
    toolConfigRef: opt(fields.toolConfigRef()),
    oidcConfig: opt(oidcConfig('Authentication of clients. Without it, anyone who can reach the proxy can use it.')),
    externalAuthConfigRef: opt(fields.externalAuthConfigRef()),
    authServerRef: opt(fields.authServerRef()),
    authzConfig: opt(
      authzConfigWithCandidate('Authorization policies. Without them, every client that the proxy accepts may do everything.'),
    ),
    rateLimiting: opt(rateLimiting('How many calls are let through. Several replicas need Redis as session storage.')),
    audit: opt(auditConfig()),
    telemetry: opt(telemetryConfig('Traces and metrics of the proxy.')),
    replicas: opt(fields.replicas()),
    sessionStorage: opt(sessionStorage('Storage of client sessions.')),
    sessionAffinity: opt(fields.sessionAffinity()),
    serviceType: opt(fields.serviceType()),
    trustProxyHeaders: opt(fields.trustProxyHeaders()),
    trustedProxies: opt(fields.trustedProxies()),
    endpointPrefix: opt(fields.endpointPrefix()),
    allowedHosts: opt(fields.allowedHosts()),
    ...fields.rejectedRefs(),
  },
  { rules },
)

const status = obj('Observed state of the proxy.', {
  phase: opt(oneOf('Lifecycle phase of the proxy.', Object.values(MCPRemoteProxyPhase))),
  ...workloadStatus(),
  externalUrl: opt(str('URL of the proxy outside the cluster, if known.')),
  externalURL: opt(str('Not written: older name of externalUrl.')),
})

export const mcpRemoteProxy = {
  kind: 'MCPRemoteProxy',
  plural: 'mcpremoteproxies',
  singular: 'mcpremoteproxy',
  shortNames: ['rp', 'mcprp'],
  description:
    'A proxy in the cluster for an MCP server that runs elsewhere. It authenticates clients and authorizes and records their calls.',
  spec,
  specRequired: true,
  status,
  rules: WORKLOAD_NAME_RULES,
  scale: true,
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Lifecycle phase of the proxy.' },
    {
      name: 'Remote URL',
      type: 'string',
      jsonPath: ".spec['remoteUrl','remoteURL']",
      description: 'URL of the remote MCP server.',
    },
    { name: 'URL', type: 'string', jsonPath: '.status.url', description: 'URL for clients.' },
    conditionColumn('Ready', MCPRemoteProxyCondition.Ready),
    { name: 'Group', type: 'string', jsonPath: '.status.group', description: 'The MCPGroup it belongs to.', priority: 1 },
    AGE_COLUMN,
  ],
} as const

export type MCPRemoteProxy = ObjectOf<typeof mcpRemoteProxy>
export const mcpRemoteProxyType = resourceTypeOf(mcpRemoteProxy)
