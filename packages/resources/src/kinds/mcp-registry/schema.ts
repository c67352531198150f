import type { CelRule } from '../../schema/cel.ts'
import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf, WORKLOAD_NAME_RULES } from '../../schema/kind-definition.ts'
import { bool, free, int32, list, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { nameRef, secretKeyRef } from '../../shared/references.ts'
import { API_PHASES, MCP_REGISTRY_PHASES, MCPRegistryCondition, SYNC_PHASES } from './constants.ts'
import { authConfig, databaseConfig } from './server-config.ts'
import { exportPolicy, filter, noSyncWithoutSource, registryEntry, singleSource, syncPolicy } from './sources.ts'

const SPEC_RULES: readonly CelRule[] = [
  {
    rule: '[has(self.source), has(self.registries), has(self.configYAML)].filter(x, x).size() == 1',
    message: 'exactly one of source, registries and configYAML must be set',
  },
  ...noSyncWithoutSource,
  {
    rule: '!has(self.registries) || self.registries.filter(r, has(r.managed)).size() <= 1',
    message: 'at most one registry can be managed',
    fieldPath: '.registries',
  },
  ...['databaseConfig', 'authConfig'].map((field) => ({
    rule: `!has(self.${field}) || !has(self.configYAML)`,
    message: `${field} cannot be combined with configYAML, which is the whole configuration of the server: write it there`,
    fieldPath: `.${field}`,
  })),
  {
    rule: "!has(self.export) || !has(self.configYAML) || (has(self.export.mode) && self.export.mode == 'none')",
    message: 'export cannot be combined with configYAML: add a kubernetes source there',
    fieldPath: '.export',
  },
  {
    rule: '!has(self.pgpassSecretRef) || !has(self.databaseConfig)',
    message: 'pgpassSecretRef cannot be combined with databaseConfig, which names the passwords itself',
    fieldPath: '.pgpassSecretRef',
  },
]

const spec = obj(
  'Sources of the registry and how it is served. Exactly one of source, registries and configYAML is set.',
  {
    displayName: opt(str('Name shown to people.', { maxLength: 255 })),
    source: opt(singleSource()),
    syncPolicy: opt(syncPolicy()),
    filter: opt(filter()),
    registries: opt(
      list('Sources that the registry server reads and merges.', registryEntry(), { merge: ['name'], minItems: 1, maxItems: 64 }),
    ),
    configYAML: opt(
      str('The whole configuration of the registry server, passed on as it is. Keep credentials out of it.', {
        minLength: 1,
        maxLength: 524288,
      }),
    ),
    replicas: opt(
      int32(
        'Number of API pods. More than one needs a database. Without it the number is left alone, for an autoscaler or kubectl scale.',
        {
          minimum: 0,
        },
      ),
    ),
    api: opt(obj('The registry API server.', { enabled: opt(bool('Whether the API server is deployed.', { default: true })) })),
    export: opt(exportPolicy()),
    enforceServers: opt(bool('Whether an MCPServer of this namespace may only use an image that a registry lists.', { default: false })),
    databaseConfig: opt(databaseConfig()),
    authConfig: opt(authConfig()),
    pgpassSecretRef: opt(secretKeyRef('Secret with a PostgreSQL password file for the server.')),
    volumes: opt(list('Further volumes of the pod, as in core/v1.', free('A volume.'), { maxItems: 64 })),
    volumeMounts: opt(list('Mounts of these volumes in the container registry-api, as in core/v1.', free('A mount.'), { maxItems: 64 })),
    imagePullSecrets: opt(list('Secrets for pulling the image.', nameRef('A Secret.'), { maxItems: 32 })),
    podTemplateSpec: opt(free('Changes to the pod; the container is called registry-api.')),
  },
  { rules: SPEC_RULES },
)

const status = obj('State of the data and of the API server.', {
  observedGeneration: opt(observedGeneration()),
  phase: opt(oneOf('Overall state.', MCP_REGISTRY_PHASES, { default: 'Pending' })),
  message: opt(str('Explanation of the phase.')),
  url: opt(str('Address of the registry API inside the cluster.')),
  replicas: opt(int32('Number of API pods.')),
  readyReplicas: opt(int32('Number of ready API pods.')),
  selector: opt(str('Label selector of the API pods, for autoscalers.')),
  syncStatus: opt(
    obj('The last read of the sources.', {
      phase: opt(oneOf('State of the read.', SYNC_PHASES)),
      message: opt(str('Explanation of the state.')),
      lastAttempt: opt(str('Time of the last attempt.', { format: 'date-time' })),
      attemptCount: opt(int32('Failed attempts since the last success.', { minimum: 0 })),
      lastSyncTime: opt(str('Time of the last success.', { format: 'date-time' })),
      lastSyncHash: opt(str('Hash of the data of the last success.')),
      serverCount: opt(int32('Number of servers after filtering.', { minimum: 0 })),
    }),
  ),
  apiStatus: opt(
    obj('The API server.', {
      phase: opt(oneOf('State of the API server.', API_PHASES)),
      message: opt(str('Explanation of the state.')),
      endpoint: opt(str('Address of the API.')),
      readySince: opt(str('Time since which it has been ready.', { format: 'date-time' })),
    }),
  ),
  exportedServers: opt(int32('Number of servers of the cluster that the registry lists; absent without spec.export.', { minimum: 0 })),
  lastAppliedFilterHash: opt(str('Hash of the filter of the last sync.')),
  lastManualSyncTrigger: opt(str('Value of the annotation toolhive.stacklok.dev/sync-trigger that was processed last.')),
  storageRef: opt(
    obj('Storage of the data.', {
      type: oneOf('Kind of storage.', ['configmap']),
      configMapRef: opt(nameRef('The storage ConfigMap.')),
    }),
  ),
  configMaps: opt(
    list(
      'Contribution of each selected ConfigMap.',
      obj('A selected ConfigMap.', {
        registry: opt(str('Name of the entry of spec.registries that selected it.')),
        name: str('Name of the ConfigMap.'),
        servers: opt(int32('Number of servers in it.', { minimum: 0 })),
        error: opt(str('Why the ConfigMap was left out.')),
      }),
    ),
  ),
  conditions: opt(conditions()),
})

export const mcpRegistry = {
  kind: 'MCPRegistry',
  plural: 'mcpregistries',
  singular: 'mcpregistry',
  shortNames: ['mcpreg', 'registry'],
  description: 'A standard MCP registry, fed by git, files, other registries, ConfigMaps chosen by label and the live cluster.',
  spec,
  specRequired: true,
  scale: true,
  status,
  rules: WORKLOAD_NAME_RULES,
  columns: [
    { name: 'Status', type: 'string', jsonPath: '.status.phase', description: 'Overall state.' },
    conditionColumn('Ready', MCPRegistryCondition.Ready),
    { name: 'Replicas', type: 'integer', jsonPath: '.status.readyReplicas', description: 'Number of ready API pods.' },
    { name: 'URL', type: 'string', jsonPath: '.status.url', description: 'Address of the registry API.' },
    { name: 'Sync', type: 'string', jsonPath: '.status.syncStatus.phase', description: 'State of the last sync.', priority: 1 },
    { name: 'API', type: 'string', jsonPath: '.status.apiStatus.phase', description: 'State of the API server.', priority: 1 },
    { name: 'Servers', type: 'integer', jsonPath: '.status.syncStatus.serverCount', description: 'Number of servers.', priority: 1 },
    {
      name: 'Exported',
      type: 'integer',
      jsonPath: '.status.exportedServers',
      description: 'Number of servers exported from the cluster.',
      priority: 1,
    },
    { name: 'Last Sync', type: 'date', jsonPath: '.status.syncStatus.lastSyncTime', description: 'Time of the last success.', priority: 1 },
    AGE_COLUMN,
  ],
} as const

export type MCPRegistry = ObjectOf<typeof mcpRegistry>
export const mcpRegistryType = resourceTypeOf(mcpRegistry)
