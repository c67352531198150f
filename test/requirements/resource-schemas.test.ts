import { readdirSync, readFileSync } from 'node:fs'
import { crdYamlOf } from '@thv/resources/crd-yaml'
import { KINDS } from '@thv/resources/kinds/kinds'
import * as entryConstants from '@thv/resources/kinds/mcp-server-entry/constants'
import { crdOf } from '@thv/resources/schema/crd'
import type { KindDefinition } from '@thv/resources/schema/kind-definition'
import { REJECTED } from '@thv/resources/schema/nodes'
import { type SchemaNode, walkSchema } from '@thv/resources/schema/schema-walk'
import { describe, expect, it } from 'vitest'

/* The shape of the resources in the design documents. Names are spelled out again here on purpose. */

function kind(name: string): KindDefinition {
  const found = KINDS.find((definition) => definition.kind === name)
  if (!found) throw new Error(`no kind ${name}`)
  return found
}

/** The node at a path such as `spec.steps[].id`, or undefined. */
function field(kindName: string, path: string): SchemaNode | undefined {
  const root = (path.startsWith('status') ? kind(kindName).status : kind(kindName).spec) as SchemaNode
  for (const visited of walkSchema(root, path.startsWith('status') ? 'status' : 'spec')) if (visited.path === path) return visited.node
  return undefined
}

const isRequired = (kindName: string, path: string) => {
  const root = (path.startsWith('status') ? kind(kindName).status : kind(kindName).spec) as SchemaNode
  for (const visited of walkSchema(root, path.startsWith('status') ? 'status' : 'spec')) if (visited.path === path) return visited.required
  throw new Error(`${kindName} has no ${path}`)
}

/** A reference that takes `name` and `{name}`: no type, so that both pass. */
const isNameOrObject = (node: SchemaNode | undefined) =>
  node?.type === undefined && node?.properties?.['name']?.type === 'string' && node?.['minLength'] === 1

/** A reference names its target: as a string, by a name, or in a member such as `configMapRef`. */
const hasName = (node: SchemaNode): boolean =>
  node.type === 'string' ||
  ['name', 'claimName'].some((member) => node.properties?.[member] !== undefined) ||
  Object.values(node.properties ?? {}).some((member) => hasName(member as SchemaNode))

interface Fact {
  ids: string
  says: string
  holds: () => void
}

const FIELDS: readonly { ids: string; kind: string; paths: Record<string, Partial<SchemaNode>> }[] = [
  { ids: '[002-006]', kind: 'MCPServer', paths: { 'spec.replicas': { type: 'integer' }, 'spec.backendReplicas': { type: 'integer' } } },
  {
    ids: '[002-020]',
    kind: 'VirtualMCPServer',
    paths: {
      'spec.config.aggregation.tools[].toolConfigRef.name': { type: 'string' },
      'spec.outgoingAuth.default.externalAuthConfigRef.name': { type: 'string' },
    },
  },
  {
    ids: '[002-034]',
    kind: 'MCPToolConfig',
    paths: {
      'spec.toolsFilter': { type: 'array' },
      'spec.toolsOverride.<key>.name': { type: 'string' },
      'spec.toolsOverride.<key>.description': { type: 'string' },
    },
  },
  {
    ids: '[002-056]',
    kind: 'MCPServer',
    paths: Object.fromEntries(
      ['oidcConfig', 'authzConfig', 'toolConfigRef', 'audit', 'telemetry', 'rateLimiting'].map((name) => [
        `spec.${name}`,
        { type: 'object' },
      ]),
    ),
  },
  { ids: '[002-057]', kind: 'MCPServer', paths: { 'spec.transport': { enum: ['stdio', 'streamable-http', 'sse'] } } },
  {
    ids: '[002-061]',
    kind: 'MCPServer',
    paths: { 'spec.permissionProfile.type': { enum: ['builtin', 'configmap'] }, 'spec.permissionProfile.name': { type: 'string' } },
  },
  {
    ids: '[002-067] [004-075]',
    kind: 'MCPServer',
    paths: { 'status.phase': { enum: ['Pending', 'Running', 'Failed', 'Terminating', 'Stopped'] } },
  },
  { ids: '[002-072]', kind: 'MCPServer', paths: { 'status.url': { type: 'string' } } },
  { ids: '[002-078]', kind: 'MCPRegistry', paths: { 'spec.api.enabled': { type: 'boolean', default: true } } },
  {
    ids: '[002-088]',
    kind: 'MCPToolConfig',
    paths: {
      'status.conditions': { type: 'array' },
      'status.observedGeneration': { type: 'integer' },
      'status.referencingWorkloads[].kind': { type: 'string' },
      'status.referencingWorkloads[].name': { type: 'string' },
    },
  },
  {
    ids: '[002-100]',
    kind: 'MCPExternalAuthConfig',
    paths: {
      'status.conditions': { type: 'array' },
      'status.observedGeneration': { type: 'integer' },
      'status.referencingWorkloads[].kind': { type: 'string' },
      'status.referencingWorkloads[].name': { type: 'string' },
    },
  },
  { ids: '[002-102]', kind: 'MCPRemoteProxy', paths: { 'spec.audit.enabled': { type: 'boolean' } } },
  {
    ids: '[002-110]',
    kind: 'MCPRemoteProxy',
    paths: { 'spec.authzConfig.configMap': { type: 'object' }, 'spec.authzConfig.inline.policies': { type: 'array' } },
  },
  { ids: '[002-116] [004-079]', kind: 'MCPGroup', paths: { 'status.phase': { enum: ['Ready', 'Pending', 'Failed'] } } },
  {
    ids: '[002-117] [002-118]',
    kind: 'MCPGroup',
    paths: { 'status.servers': { type: 'array' }, 'status.serverCount': { type: 'integer' } },
  },
  {
    ids: '[002-129]',
    kind: 'VirtualMCPServer',
    paths: Object.fromEntries(
      ['workload', 'filter', 'exclude', 'overrides'].map((name) => [`spec.config.aggregation.tools[].${name}`, {}]),
    ),
  },
  { ids: '[002-133]', kind: 'VirtualMCPServer', paths: { 'spec.config.compositeTools[].steps[].id': { type: 'string' } } },
  {
    ids: '[002-138]',
    kind: 'VirtualMCPServer',
    paths: { 'spec.outgoingAuth.source': {}, 'spec.outgoingAuth.default.type': {}, 'spec.outgoingAuth.backends.<key>.type': {} },
  },
  {
    ids: '[002-141]',
    kind: 'VirtualMCPServer',
    paths: {
      'spec.config.tokenCache.enabled': { default: true },
      'spec.config.tokenCache.maxEntries': { default: 10000 },
      'spec.config.tokenCache.ttlOffset': { default: '60s' },
    },
  },
  {
    ids: '[002-145]',
    kind: 'VirtualMCPServer',
    paths: {
      'spec.config.operational.failureHandling.healthCheckInterval': { type: 'string' },
      'spec.config.operational.failureHandling.partialFailureMode': { enum: ['fail', 'best_effort'], default: 'best_effort' },
    },
  },
  {
    ids: '[002-146]',
    kind: 'VirtualMCPServer',
    paths: {
      'spec.config.operational.retry.attempts': { type: 'integer' },
      'spec.config.operational.retry.backoff': {},
      'spec.config.operational.retry.on': { type: 'array' },
    },
  },
  { ids: '[002-151] [004-078]', kind: 'VirtualMCPServer', paths: { 'status.phase': { enum: ['Pending', 'Ready', 'Degraded', 'Failed'] } } },
  { ids: '[002-156]', kind: 'VirtualMCPServer', paths: { 'status.url': { type: 'string' } } },
  {
    ids: '[002-158]',
    kind: 'VirtualMCPServer',
    paths: {
      'status.discoveredBackends': { 'x-kubernetes-list-map-keys': ['name'] },
      'status.discoveredBackends[].url': {},
      'status.discoveredBackends[].status': {},
      'status.discoveredBackends[].lastHealthCheck': {},
    },
  },
  { ids: '[002-163]', kind: 'VirtualMCPServer', paths: { 'spec.config.groupRef': { type: 'string' } } },
  {
    ids: '[002-167]',
    kind: 'VirtualMCPServer',
    paths: { 'spec.config.aggregation.conflictResolutionConfig.priorityOrder': { type: 'array' } },
  },
  {
    ids: '[002-178]',
    kind: 'VirtualMCPCompositeToolDefinition',
    paths: {
      'spec.steps[].id': {},
      'spec.steps[].tool': {},
      'spec.steps[].dependsOn': { type: 'array' },
      'spec.steps[].condition': {},
      'spec.steps[].onError.action': { enum: ['abort', 'continue', 'retry'] },
    },
  },
  {
    ids: '[002-187] [002-188]',
    kind: 'VirtualMCPCompositeToolDefinition',
    paths: {
      'status.validationStatus': { type: 'string' },
      'status.validationErrors': { type: 'array' },
      'status.referencingVirtualServers': { type: 'array' },
    },
  },
  { ids: '[002-208]', kind: 'MCPServer', paths: { 'spec.serviceType': { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] } } },
  {
    ids: '[002-233]',
    kind: 'MCPServer',
    paths: {
      'spec.transport': { type: 'string' },
      'spec.proxyPort': { type: 'integer' },
      'spec.mcpPort': { type: 'integer' },
      'spec.replicas': { type: 'integer' },
      'spec.serviceType': { type: 'string' },
    },
  },
  {
    ids: '[002-262]',
    kind: 'MCPRegistry',
    paths: {
      'status.syncStatus.lastSyncTime': {},
      'status.syncStatus.lastSyncHash': {},
      'status.syncStatus.attemptCount': { type: 'integer' },
    },
  },
  { ids: '[002-287]', kind: 'MCPServer', paths: { 'spec.authzConfig.configMap.key': { default: 'authz.json' } } },
  {
    ids: '[003-017] [003-019] [003-080] [003-086] [003-093] [003-094]',
    kind: 'MCPRegistry',
    paths: Object.fromEntries(
      [
        'name',
        'format',
        'configMapRef.name',
        'configMapRef.key',
        'configMapSelector',
        'git.repository',
        'git.branch',
        'git.path',
        'api',
        'syncPolicy.interval',
        'filter.names.include',
        'filter.names.exclude',
      ].map((name) => [`spec.registries[].${name}`, {}]),
    ),
  },
  { ids: '[003-067]', kind: 'MCPRegistry', paths: { 'spec.registries[].configMapSelector.matchExpressions': { minItems: 1 } } },
  {
    ids: '[004-032] [004-088]',
    kind: 'MCPServerEntry',
    paths: { 'spec.allowPrivateEndpoint': { type: 'boolean' }, 'spec.insecureAllowHTTP': { type: 'boolean', default: false } },
  },
  { ids: '[004-060]', kind: 'MCPServerEntry', paths: { 'spec.headerForward.addHeadersFromSecret[].headerName': { type: 'string' } } },
  {
    ids: '[004-063]',
    kind: 'MCPServerEntry',
    paths: { 'spec.caBundleRef.configMapRef.name': {}, 'spec.caBundleRef.configMapRef.key': {} },
  },
  {
    ids: '[004-072]',
    kind: 'MCPServerEntry',
    paths: { 'status.conditions': { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] } },
  },
  { ids: '[004-073]', kind: 'MCPServerEntry', paths: { 'status.observedGeneration': { type: 'integer', format: 'int64' } } },
  { ids: '[004-077]', kind: 'MCPRemoteProxy', paths: { 'status.phase': { enum: ['Pending', 'Ready', 'Failed', 'Terminating'] } } },
  { ids: '[004-080]', kind: 'MCPServerEntry', paths: { 'status.phase': { enum: ['Pending', 'Ready', 'Failed'] } } },
  {
    ids: '[004-101]',
    kind: 'MCPGroup',
    paths: { 'status.serverEntries': { type: 'array' }, 'status.serverEntryCount': { type: 'integer' } },
  },
]

describe('fields', () => {
  it.each(FIELDS.map((row) => [row.kind, Object.keys(row.paths).join(', '), row.ids, row] as const))(
    '%s: %s %s',
    (_kind, _paths, _ids, row) => {
      for (const [path, expected] of Object.entries(row.paths)) {
        const node = field(row.kind, path)
        expect(node, path).toBeDefined()
        expect(node).toMatchObject(expected)
      }
    },
  )
})

const FACTS: readonly Fact[] = [
  {
    ids: '[002-022]',
    says: 'MCPServer and MCPRemoteProxy are served in both versions',
    holds: () => ['MCPServer', 'MCPRemoteProxy'].forEach(servedInBoth),
  },
  { ids: '[002-023]', says: 'MCPGroup is served in both versions', holds: () => servedInBoth('MCPGroup') },
  {
    ids: '[002-024]',
    says: 'the two virtual kinds are served in both versions',
    holds: () => ['VirtualMCPServer', 'VirtualMCPCompositeToolDefinition'].forEach(servedInBoth),
  },
  { ids: '[002-025]', says: 'MCPRegistry is served in both versions', holds: () => servedInBoth('MCPRegistry') },
  {
    ids: '[002-026]',
    says: 'MCPToolConfig, short name toolconfig, and MCPExternalAuthConfig are served in both versions',
    holds: () => {
      ;['MCPToolConfig', 'MCPExternalAuthConfig'].forEach(servedInBoth)
      expect(kind('MCPToolConfig').shortNames).toContain('toolconfig')
    },
  },
  {
    ids: '[002-033]',
    says: 'a group takes nothing but a description',
    holds: () => expect(Object.keys((kind('MCPGroup').spec as SchemaNode).properties ?? {})).toEqual(['description']),
  },
  ...[
    ['VirtualMCPServer', '[002-040]'],
    ['MCPServer', '[002-043]'],
    ['MCPRemoteProxy', '[002-049]'],
    ['MCPServerEntry', '[004-030]'],
  ].map(([name = '', ids = '']) => ({
    ids,
    says: `groupRef of ${name} is a name or an object with a name`,
    holds: () => expect(isNameOrObject(field(name, 'spec.groupRef'))).toBe(true),
  })),
  {
    ids: '[004-037]',
    says: 'groupRef has the same shape on all members of a group',
    holds: () => {
      const shapes = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry'].map((name) => ({ ...field(name, 'spec.groupRef'), description: '' }))
      expect(shapes[1]).toEqual(shapes[0])
      expect(shapes[2]).toEqual(shapes[0])
    },
  },
  ...[
    ['MCPServer', 'externalAuthConfigRef', '[002-045]'],
    ['MCPServer', 'toolConfigRef', '[002-047]'],
    ['MCPRemoteProxy', 'externalAuthConfigRef', '[002-051]'],
    ['MCPRemoteProxy', 'toolConfigRef', '[002-053]'],
    ['MCPServerEntry', 'externalAuthConfigRef', '[004-084]'],
  ].map(([name = '', ref = '', ids = '']) => ({
    ids,
    says: `${ref} of ${name} is optional and needs a name when given`,
    holds: () => {
      expect(isRequired(name, `spec.${ref}`)).toBe(false)
      expect(isRequired(name, `spec.${ref}.name`)).toBe(true)
    },
  })),
  {
    ids: '[002-055]',
    says: 'an MCPServer needs an image and nothing else',
    holds: () => expect((kind('MCPServer').spec as SchemaNode).required).toEqual(['image']),
  },
  {
    ids: '[002-106] [004-047]',
    says: 'oidcConfig of MCPRemoteProxy is the union of the documents and optional',
    holds: () => {
      expect(isRequired('MCPRemoteProxy', 'spec.oidcConfig')).toBe(false)
      const own = field('MCPServer', 'spec.oidcConfig')
      // A remote server never gets the tokens of clients.
      const { forwardToken, ...shared } = own?.properties ?? {}
      expect(forwardToken).toBeDefined()
      expect({ ...field('MCPRemoteProxy', 'spec.oidcConfig'), description: '' }).toEqual({ ...own, properties: shared, description: '' })
    },
  },
  {
    ids: '[002-128]',
    says: 'conflictResolution offers prefix, priority and manual',
    holds: () =>
      expect(field('VirtualMCPServer', 'spec.config.aggregation.conflictResolution')?.enum).toEqual(
        expect.arrayContaining(['prefix', 'priority', 'manual']),
      ),
  },
  {
    ids: '[002-160]',
    says: 'backendCount is an integer and a printer column',
    holds: () => {
      expect(field('VirtualMCPServer', 'status.backendCount')?.type).toBe('integer')
      expect(kind('VirtualMCPServer').columns.map((column) => column.jsonPath)).toContain('.status.backendCount')
    },
  },
  {
    ids: '[002-185]',
    says: 'composite tools can be named in both places',
    holds: () => {
      expect(field('VirtualMCPServer', 'spec.compositeToolRefs[].name')?.type).toBe('string')
      expect(field('VirtualMCPServer', 'spec.config.compositeToolRefs[].name')?.type).toBe('string')
    },
  },
  { ids: '[002-211]', says: 'serviceAccount is optional', holds: () => expect(isRequired('MCPServer', 'spec.serviceAccount')).toBe(false) },
  {
    ids: '[002-235]',
    says: 'every reference is a typed field with a name',
    holds: () => {
      const references = KINDS.flatMap((definition) =>
        [...walkSchema(definition.spec as SchemaNode, 'spec')]
          .filter(({ path, node }) => /Ref(\[\])?$|Refs\[\]$/.test(path) && !(REJECTED in node))
          .map(({ path, node }) => ({ path: `${definition.kind} ${path}`, hasName: hasName(node) })),
      )
      expect(references.length).toBeGreaterThan(20)
      expect(references.filter((reference) => !reference.hasName).map(({ path }) => path)).toEqual([])
    },
  },
  { ids: '[002-270]', says: 'syncPolicy may be left out', holds: () => expect(isRequired('MCPRegistry', 'spec.syncPolicy')).toBe(false) },
  {
    ids: '[000-069]',
    says: 'no kind has a field externalURL in its spec',
    holds: () =>
      expect(KINDS.filter((definition) => field(definition.kind, 'spec.externalURL')).map((definition) => definition.kind)).toEqual([]),
  },
  {
    ids: '[000-131]',
    says: 'no export mode publishes routes that did not ask for it',
    holds: () => expect(field('MCPRegistry', 'spec.export.mode')?.enum).toEqual(['server', 'operator', 'none']),
  },
  {
    ids: '[000-133]',
    says: 'there is no kind RegistryExport',
    holds: () => expect(KINDS.map((definition) => definition.kind)).not.toContain('RegistryExport'),
  },
  {
    ids: '[003-006] [003-030]',
    says: 'a selector names no namespace and no prefix format',
    holds: () =>
      expect(Object.keys(field('MCPRegistry', 'spec.registries[].configMapSelector')?.properties ?? {}).toSorted()).toEqual([
        'conflictStrategy',
        'key',
        'matchExpressions',
        'matchLabels',
      ]),
  },
  {
    ids: '[003-009]',
    says: 'the rules stand in the CRD, and no webhook that is deployed asks for MCPRegistries',
    holds: () => {
      expect(field('MCPRegistry', 'spec.registries[]')?.['x-kubernetes-validations']).toHaveLength(2)
      const shipped = readdirSync(new URL('../../deploy', import.meta.url), { recursive: true, withFileTypes: true }).filter((entry) =>
        entry.isFile(),
      )
      expect(shipped.length).toBeGreaterThan(0)
      const webhooks = shipped
        .flatMap((entry) => readFileSync(`${entry.parentPath}/${entry.name}`, 'utf8').split(/^---$/m))
        .filter((text) => /^kind: (Validating|Mutating)WebhookConfiguration$/m.test(text))
      expect(webhooks.length).toBeGreaterThan(0)
      for (const text of webhooks)
        expect(text.match(/^ *resources: .*$/gm)).toEqual([
          expect.stringMatching(/^ *resources: \[virtualmcpservers, virtualmcpcompositetooldefinitions\]$/),
        ])
    },
  },
  {
    ids: '[003-053]',
    says: 'the committed CRDs are what the generator makes',
    holds: () => {
      const committed = (plural: string) => readFileSync(new URL(`../../deploy/crds/${plural}.yaml`, import.meta.url), 'utf8')
      for (const definition of KINDS) expect(committed(definition.plural)).toContain(crdYamlOf(definition))
    },
  },
  { ids: '[004-001]', says: 'MCPServerEntry is namespaced and served in both versions', holds: () => servedInBoth('MCPServerEntry') },
  { ids: '[004-002]', says: 'its short name is mcpentry', holds: () => expect(kind('MCPServerEntry').shortNames).toContain('mcpentry') },
  { ids: '[004-005]', says: 'an entry needs a group', holds: () => expect(isRequired('MCPServerEntry', 'spec.groupRef')).toBe(true) },
  {
    ids: '[004-025]',
    says: 'an entry follows the patterns of the other kinds',
    holds: () => {
      for (const definition of KINDS) {
        const crd = crdOf(definition) as unknown as { spec: { names: { categories: string[] }; versions: { subresources: object }[] } }
        expect(crd.spec.names.categories).toEqual(['toolhive'])
        expect(crd.spec.versions.every((version) => 'status' in version.subresources)).toBe(true)
        expect(field(definition.kind, 'status.conditions')).toEqual(field('MCPServerEntry', 'status.conditions'))
        expect(field(definition.kind, 'status.observedGeneration')).toEqual(field('MCPServerEntry', 'status.observedGeneration'))
      }
    },
  },
  {
    ids: '[004-038]',
    says: 'CA bundles come from a ConfigMap, never from a Secret',
    holds: () =>
      expect(Object.keys(field('MCPServerEntry', 'spec.caBundleRef')?.properties ?? {}).filter((name) => /secret/i.test(name))).toEqual([]),
  },
  {
    ids: '[004-045]',
    says: 'no kind MCPRemoteServerEntry is served',
    holds: () => expect(KINDS.map((definition) => definition.kind)).not.toContain('MCPRemoteServerEntry'),
  },
  {
    ids: '[004-046]',
    says: 'the description says that entries are remote',
    holds: () => expect(kind('MCPServerEntry').description).toMatch(/remote/i),
  },
  {
    ids: '[004-058]',
    says: 'an entry carries no deprecation mark',
    holds: () => expect(JSON.stringify(crdOf(kind('MCPServerEntry')))).not.toMatch(/deprecated/),
  },
  {
    ids: '[004-064] [004-086]',
    says: 'caBundleRef and headerForward are one schema wherever they appear',
    holds: () => {
      for (const name of ['caBundleRef', 'headerForward']) {
        const own = { ...field('MCPServerEntry', `spec.${name}`), description: '', 'x-kubernetes-validations': [] }
        expect({ ...field('MCPRemoteProxy', `spec.${name}`), description: '', 'x-kubernetes-validations': [] }).toEqual(own)
      }
    },
  },
  {
    ids: '[004-071]',
    says: 'conditions and reasons of an entry are exported constants that name the kind',
    holds: () =>
      expect(entryConstants).toMatchObject({
        ConditionTypeMCPServerEntryGroupRefValidated: 'GroupRefValidated',
        ConditionTypeMCPServerEntryExternalAuthConfigValidated: 'ExternalAuthConfigValidated',
        ConditionTypeMCPServerEntryCABundleRefValidated: 'CABundleRefValidated',
      }),
  },
  {
    ids: '[004-082]',
    says: 'every kind prints its state and its age',
    holds: () => {
      for (const { columns, kind: name } of KINDS) {
        expect(
          columns.map((column) => column.name),
          name,
        ).toContain('Age')
        expect(
          columns.some((column) => /phase|validationStatus|=='Valid'/.test(column.jsonPath)),
          name,
        ).toBe(true)
      }
    },
  },
  {
    ids: '[004-120]',
    says: 'referencingWorkloads knows the four kinds',
    holds: () =>
      expect(field('MCPExternalAuthConfig', 'status.referencingWorkloads[].kind')?.enum?.toSorted()).toEqual([
        'MCPRemoteProxy',
        'MCPServer',
        'MCPServerEntry',
        'VirtualMCPServer',
      ]),
  },
]

describe('facts', () => {
  it.each(FACTS.map((fact) => [fact.says, fact.ids, fact] as const))('%s %s', (_says, _ids, fact) => fact.holds())
})

function servedInBoth(name: string): void {
  const crd = crdOf(kind(name)) as unknown as { spec: { group: string; scope: string; versions: { name: string; served: boolean }[] } }
  expect(crd.spec).toMatchObject({ group: 'toolhive.stacklok.dev', scope: 'Namespaced' })
  expect(
    crd.spec.versions
      .filter((version) => version.served)
      .map((version) => version.name)
      .toSorted(),
  ).toEqual(['v1alpha1', 'v1beta1'])
}
