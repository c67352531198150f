import { type CelRule, sameIfBoth } from '../../schema/cel.ts'
import {
  AGE_COLUMN,
  conditionColumn,
  type ObjectOf,
  reasonColumn,
  resourceTypeOf,
  WORKLOAD_NAME_RULES,
} from '../../schema/kind-definition.ts'
import { bool, int32, list, nameOrRef, obj, oneOf, opt, port, str } from '../../schema/nodes.ts'
import { auditConfig } from '../../shared/audit-config.ts'
import { authzConfigWithCandidate } from '../../shared/authz-config.ts'
import { serverOidcConfig } from '../../shared/oidc-config.ts'
import { anyPerUser, rateLimiting } from '../../shared/rate-limiting.ts'
import { resourceOverrides } from '../../shared/resource-overrides.ts'
import { sessionStorage } from '../../shared/session-storage.ts'
import { telemetryConfig } from '../../shared/telemetry-config.ts'
import * as fields from '../../shared/workload-fields.ts'
import { workloadStatus } from '../../shared/workload-status.ts'
import { MCPServerCondition, MCPServerPhase } from './constants.ts'

const secrets = () =>
  list(
    'Values of Secrets that become environment variables of the MCP server.',
    obj('One value.', {
      name: str('Name of the Secret.', { minLength: 1, maxLength: 253 }),
      key: str('Key inside the Secret.', { minLength: 1, maxLength: 253 }),
      targetEnvName: opt(str('Name of the variable; by default the key.', { minLength: 1, maxLength: 1024, pattern: '^[^=\\s]+$' })),
    }),
    { merge: ['name', 'key'], maxItems: 1000 },
  )

const volumes = () =>
  list(
    'Folders of the node that are mounted into the MCP server. For other volumes use podTemplateSpec.',
    obj('One mounted folder.', {
      name: str('Name of the volume.', { maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' }),
      hostPath: str('Path on the node.', { minLength: 1, maxLength: 4096 }),
      mountPath: str('Path in the container.', { minLength: 1, maxLength: 4096, pattern: '^[^:]+$' }),
      readOnly: opt(bool('Whether the server may only read it.', { default: false })),
    }),
    { merge: ['name'], maxItems: 256 },
  )

const permissionProfile = () =>
  obj(
    'Network access of the MCP server. Becomes a NetworkPolicy, which the cluster network must enforce.',
    {
      type: opt(oneOf('Source of the profile.', ['builtin', 'configmap'], { default: 'builtin' })),
      name: str('none (no outgoing connections), network (all of them), or the name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
      key: opt(str('Key of the profile inside the ConfigMap.', { minLength: 1, maxLength: 253 })),
    },
    {
      rules: [
        {
          rule: "self.type != 'builtin' || self.name in ['none', 'network']",
          message: 'a builtin profile must be none or network; for a profile of your own use type configmap',
          fieldPath: '.name',
        },
        { rule: "(self.type == 'configmap') == has(self.key)", message: 'key must be set if and only if type is configmap' },
      ],
    },
  )

const rules: readonly CelRule[] = [
  sameIfBoth('proxyPort', 'port'),
  sameIfBoth('mcpPort', 'targetPort'),
  {
    rule: '!has(self.toolConfigRef) || !has(self.tools) || size(self.tools) == 0',
    message: 'tools and toolConfigRef must not both be set: put the tools into the MCPToolConfig',
    fieldPath: '.tools',
  },
  {
    rule: `!has(self.rateLimiting) || !${anyPerUser('self.rateLimiting')} || has(self.oidcConfig) || has(self.externalAuthConfigRef) || has(self.authServerRef)`,
    message: 'limits per user need to know the user: set oidcConfig, externalAuthConfigRef or authServerRef',
    fieldPath: '.rateLimiting',
  },
  {
    rule: '!has(self.oidcConfig) || !has(self.oidcConfig.forwardToken) || !self.oidcConfig.forwardToken || !has(self.externalAuthConfigRef)',
    message: 'oidcConfig.forwardToken must not be true beside externalAuthConfigRef, which sets the credentials for the server',
    fieldPath: '.oidcConfig',
  },
]

const spec = obj(
  'The MCP server to run and how clients reach it.',
  {
    image: str(
      'Container image of the MCP server, or a package with its exact version: npx://PACKAGE@VERSION (npm) or uvx://PACKAGE@VERSION (PyPI).',
      { minLength: 1, maxLength: 4096 },
    ),
    transport: opt(oneOf('Transport of the MCP server.', ['stdio', 'streamable-http', 'sse'], { default: 'stdio' })),
    proxyMode: opt(
      oneOf(
        'Transport between clients and the proxy of a stdio server. Other servers keep their own transport.',
        ['sse', 'streamable-http'],
        {
          default: 'streamable-http',
        },
      ),
    ),
    proxyPort: opt(fields.proxyPort()),
    port: opt(fields.deprecatedPort()),
    mcpPort: opt(port('Port that the MCP server listens on; 8080 by default.')),
    targetPort: opt(port('Older name of mcpPort.')),
    args: opt(list('Arguments of the MCP server.', str('One argument.', { maxLength: 131072 }), { maxItems: 1000 })),
    env: opt(fields.envList('Environment of the MCP server.')),
    secrets: opt(secrets()),
    volumes: opt(volumes()),
    resources: opt(fields.resources('proxy')),
    permissionProfile: opt(permissionProfile()),
    podTemplateSpec: opt(fields.podTemplateSpec('mcp')),
    resourceOverrides: opt(resourceOverrides()),
    serviceAccount: opt(fields.serviceAccount('ServiceAccount of the MCP server; by default one without any rights is made.')),
    groupRef: opt(nameOrRef('MCPGroup that the server belongs to.')),
    tools: opt(
      list(
        'Names of the tools that clients see. Older form of toolConfigRef.',
        str('Name of a tool.', { minLength: 1, maxLength: 256, pattern: '^[^,\\r\\n]+$' }),
        { merge: 'set', maxItems: 1000 },
      ),
    ),
    toolConfigRef: opt(fields.toolConfigRef()),
    oidcConfig: opt(serverOidcConfig('How clients prove who they are. Without it the proxy lets everybody in.')),
    externalAuthConfigRef: opt(fields.externalAuthConfigRef()),
    authServerRef: opt(fields.authServerRef()),
    authzConfig: opt(
      authzConfigWithCandidate('Authorization policies. Without them, every client that the proxy accepts may do everything.'),
    ),
    rateLimiting: opt(rateLimiting('Rate limits. Several replicas need Redis as session storage.')),
    audit: opt(auditConfig()),
    telemetry: opt(telemetryConfig('Traces and metrics of the proxy.')),
    replicas: opt(fields.replicas()),
    backendReplicas: opt(
      int32('Number of MCP server pods. If unset, kubectl scale decides; a stdio server with several proxies has one for each.', {
        minimum: 0,
      }),
    ),
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

const status = obj('Observed state of the server.', {
  phase: opt(oneOf('Lifecycle phase of the server.', Object.values(MCPServerPhase))),
  ...workloadStatus(),
  readyReplicas: opt(int32('Number of proxy pods that are ready.')),
})

export const mcpServer = {
  kind: 'MCPServer',
  plural: 'mcpservers',
  singular: 'mcpserver',
  shortNames: ['mcpserver', 'mcpservers'],
  description: 'An MCP server that runs in the cluster, behind a proxy that authenticates clients and authorizes and records their calls.',
  spec,
  specRequired: true,
  status,
  rules: WORKLOAD_NAME_RULES,
  scale: true,
  columns: [
    { name: 'Status', type: 'string', jsonPath: '.status.phase', description: 'Lifecycle phase of the server.' },
    conditionColumn('Ready', MCPServerCondition.Ready),
    reasonColumn('Reason', MCPServerCondition.Ready),
    { name: 'Replicas', type: 'integer', jsonPath: '.status.readyReplicas', description: 'Number of proxy pods that are ready.' },
    { name: 'URL', type: 'string', jsonPath: '.status.url', description: 'URL for clients.' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', description: 'Status message.', priority: 1 },
    { name: 'Group', type: 'string', jsonPath: '.status.group', description: 'The MCPGroup it belongs to.', priority: 1 },
    AGE_COLUMN,
  ],
} as const

export type MCPServer = ObjectOf<typeof mcpServer>
export const mcpServerType = resourceTypeOf(mcpServer)
