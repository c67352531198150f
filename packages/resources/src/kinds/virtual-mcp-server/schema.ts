import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf, WORKLOAD_NAME_RULES } from '../../schema/kind-definition.ts'
import { nameOrRef, obj, opt, rejected } from '../../schema/nodes.ts'
import { embeddedAuthServer } from '../../shared/auth-server/embedded-auth-server.ts'
import { sessionStorage } from '../../shared/session-storage.ts'
import * as fields from '../../shared/workload-fields.ts'
import { compositeToolRefs, config, passthroughHeaders } from './config.ts'
import { VirtualMCPServerCondition } from './constants.ts'
import { incomingAuth } from './incoming-auth.ts'
import { outgoingAuth } from './outgoing-auth.ts'
import { nameRules, specRules } from './rules.ts'
import { status } from './status.ts'
import { UNSUPPORTED } from './unsupported.ts'

const spec = obj(
  'The group to serve, authentication, and presentation of its tools.',
  {
    groupRef: opt(nameOrRef('MCPGroup whose members are joined.')),
    config: opt(config()),
    incomingAuth: opt(incomingAuth()),
    outgoingAuth: opt(outgoingAuth()),
    authServerConfig: opt(embeddedAuthServer('Authorization server inside the virtual server, for clients to log in to.')),
    compositeToolRefs: opt(compositeToolRefs('VirtualMCPCompositeToolDefinitions that are offered as tools.')),
    passthroughHeaders: opt(passthroughHeaders('Headers of the client that are passed on to all backends.')),
    sessionStorage: opt(sessionStorage('Storage of client sessions.')),
    replicas: opt(fields.replicas()),
    serviceType: opt(fields.serviceType()),
    sessionAffinity: opt(fields.sessionAffinity()),
    trustProxyHeaders: opt(fields.trustProxyHeaders()),
    trustedProxies: opt(fields.trustedProxies()),
    allowedHosts: opt(fields.allowedHosts()),
    serviceAccount: opt(fields.serviceAccount('ServiceAccount of the pods; by default one is made.')),
    imagePullSecrets: opt(fields.imagePullSecrets('Secrets for pulling the image.')),
    podTemplateSpec: opt(fields.podTemplateSpec('vmcp')),
    telemetryConfigRef: opt(rejected(UNSUPPORTED.telemetryConfigRef)),
    embeddingServerRef: opt(rejected(UNSUPPORTED.embeddingServerRef)),
    aggregation: opt(rejected(UNSUPPORTED.aggregation)),
    operational: opt(rejected(UNSUPPORTED.operational)),
  },
  {
    rules: specRules,
    anyOf: [{ required: ['groupRef'] }, { required: ['config'], properties: { config: { required: ['groupRef'] } } }],
  },
)

export const virtualMcpServer = {
  kind: 'VirtualMCPServer',
  plural: 'virtualmcpservers',
  singular: 'virtualmcpserver',
  shortNames: ['vmcp', 'virtualmcp'],
  description: 'One MCP server that joins the tools, resources and prompts of all members of an MCPGroup.',
  spec,
  specRequired: true,
  status,
  rules: [...WORKLOAD_NAME_RULES, ...nameRules],
  scale: true,
  describedOnce: true,
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Pending, Ready, Degraded or Failed.' },
    conditionColumn('Ready', VirtualMCPServerCondition.Ready),
    { name: 'URL', type: 'string', jsonPath: '.status.url', description: 'URL for clients.' },
    { name: 'Backends', type: 'integer', jsonPath: '.status.backendCount', description: 'Number of backends that can be used.' },
    { name: 'Group', type: 'string', jsonPath: '.status.group', description: 'The MCPGroup that is joined.', priority: 1 },
    AGE_COLUMN,
  ],
} as const

export type VirtualMCPServer = ObjectOf<typeof virtualMcpServer>
export const virtualMcpServerType = resourceTypeOf(virtualMcpServer)
