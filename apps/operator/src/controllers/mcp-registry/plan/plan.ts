import type { ConditionUpdate, ConfigMap, Deployment } from '@thv/kube'
import { MCPRegistryCondition, MCPRegistryReason, SYNC_TRIGGER_ANNOTATION } from '@thv/resources/kinds/mcp-registry/constants'
import { type CanonicalMCPRegistrySpec, normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { parse } from 'yaml'
import type { Blocker } from '../../../deployment/contribution.ts'
import type { PlannedChild } from '../../../deployment/deployment-plan.ts'
import type { TemplateProblem } from '../../../deployment/template/template-problem.ts'
import type { ExportReading } from '../../../export/export-follower.ts'
import { decideExport, type ExportScope } from '../../../export/export-scope.ts'
import type { OperatorSettings } from '../../../operator-settings.ts'
import type { EntryAggregate } from '../aggregate/aggregate-entry.ts'
import { STORAGE_VOLUME } from '../config/registry-place.ts'
import { type FieldProblem, type RenderedConfig, renderServerConfig } from '../config/server-config.ts'
import { accountOf, configMapOf, type DataMaps, dataMaps, serviceOf } from '../objects/children.ts'
import { readsCluster, registryDeployment } from '../objects/deployment.ts'
import { disruptionBudget, type PodDisruptionBudget } from '../objects/disruption-budget.ts'
import { ownAccess } from '../objects/export-access.ts'
import { aggregateName, type RegistryNames, registryNames } from '../objects/names.ts'
import { type ExportReport, reportExport } from './export-report.ts'

export interface PlanInput {
  readonly registry: MCPRegistry
  readonly settings: Pick<
    OperatorSettings,
    | 'registryImage'
    | 'defaultImagePullSecrets'
    | 'platform'
    | 'podSecurity'
    | 'remotes'
    | 'clusterDomain'
    | 'registryExport'
    | 'watchNamespaces'
  >
  readonly aggregates: readonly EntryAggregate[]
  /** Names that the spec references and the namespace does not have. */
  readonly missing: readonly string[]
  /** Problems of referenced objects that are there. */
  readonly invalidReferences: readonly string[]
  /** The Deployment that is there. */
  readonly live: Deployment | undefined
  readonly secretsHash: string | undefined
  /** Undefined until the operator has read the cluster. */
  readonly exportReading: ExportReading | undefined
}

/** All that an MCPRegistry needs. Pure data. */
export interface RegistryPlan {
  readonly spec: CanonicalMCPRegistrySpec
  /** Registry data, written first. */
  readonly data: DataMaps
  /** Configuration and API server; empty when the API is disabled, something blocks it, or the first data of its export are awaited. */
  readonly children: readonly PlannedChild[]
  /** For several replicas; undefined: there must be none. */
  readonly budget: PodDisruptionBudget | undefined
  /** Children that must not be there. */
  readonly unwanted: readonly { readonly kind: PlannedChild['kind']; readonly name: string }[]
  readonly conditions: readonly ConditionUpdate[]
  /** Not empty: configuration and Deployment stay as they are. */
  readonly blockers: readonly Blocker[]
  readonly aggregates: readonly EntryAggregate[]
  /** The manual trigger that waits to be done; undefined without one. */
  readonly trigger: string | undefined
  readonly url: string
  /** Undefined: nothing of the cluster is exported. */
  readonly exported: ExportScope | undefined
  /** The scope that the pods may read: those of mode server that go on keep their rights. */
  readonly readable: ExportScope | undefined
  /** Undefined while it is unknown. */
  readonly exportedServers: number | undefined
  /** The cluster has not been read yet: what the status says of the export stays. */
  readonly exportPending: boolean
}

export function planMcpRegistry(input: PlanInput): RegistryPlan {
  const { registry, settings, aggregates } = input
  const { name, namespace = '' } = registry.metadata
  const place = { name, namespace }
  const { spec, problems } = normaliseMcpRegistry(registry)
  const trigger = registry.metadata.annotations?.[SYNC_TRIGGER_ANNOTATION] || undefined
  const decision = decideExport(spec, namespace, settings)
  const exported = decision.kind === 'export' ? decision.scope : undefined
  const config = renderServerConfig({ name, spec, syncRequest: trigger, allowPrivateAddresses: !settings.remotes.denyPrivate, exported })
  const scale = replicasOf(spec, input.live)
  const made = registryDeployment({
    ...place,
    spec,
    settings,
    replicas: scale.replicas,
    hasBudget: scale.isSeveral,
    fixed: 'configYAML' in spec ? fixedPart(spec.configYAML) : config.fixed,
    exported,
    secretsHash: input.secretsHash,
  })
  const blockers = [
    ...problems.map(({ message }) => invalid(message)),
    ...sourceBlockers(config.problems),
    ...templateBlockers(made.problems),
  ]
  const isServed = spec.api.enabled
  const reported = reportExport(decision, input.exportReading)
  // Pods that serve an export of the other mode go on until the data of this one are written, which they never are when they are too large.
  const hasReaders = input.live !== undefined && readsCluster(input.live)
  const isServing = input.live !== undefined && (reported === undefined || (reported.texts === undefined && hasReaders))
  const awaitsData = exported?.mode === 'operator' && isServing
  const names = registryNames(name)
  return {
    spec,
    data: joined([aggregateMaps(place, aggregates), exportMaps(place, reported)]),
    children:
      isServed && blockers.length === 0 && !awaitsData ? children(input, { spec, config, exported, deployment: made.deployment }) : [],
    budget: isServed && scale.isSeveral ? disruptionBudget(place) : undefined,
    unwanted: [
      ...(isServed ? [] : apiObjects(names)),
      ...(awaitsData || (exported !== undefined && ownAccess(place, spec, exported) !== undefined) ? [] : accessObjects(names)),
    ],
    conditions: [
      ...made.conditions,
      ...scale.conditions,
      ...availability(
        input.missing.filter((object) => !optionalObjects(spec).has(object)),
        input.invalidReferences,
      ),
      ...selectorConditions(aggregates),
      ...(reported === undefined ? [] : [reported.condition]),
      ...ephemeralCondition(spec),
    ],
    blockers,
    aggregates,
    trigger,
    url: `http://${names.service}.${namespace}.svc.${settings.clusterDomain}:8080`,
    exported,
    readable: exported && awaitsData && hasReaders ? { ...exported, mode: 'server' } : exported,
    exportedServers: reported?.servers,
    exportPending: exported !== undefined && reported === undefined,
  }
}

function apiObjects(names: RegistryNames): RegistryPlan['unwanted'] {
  return [
    { kind: 'Deployment', name: names.deployment },
    { kind: 'Service', name: names.service },
    { kind: 'ConfigMap', name: names.config },
    { kind: 'ServiceAccount', name: names.account },
  ]
}

function accessObjects({ exportRole }: RegistryNames): RegistryPlan['unwanted'] {
  return [
    { kind: 'RoleBinding', name: exportRole },
    { kind: 'Role', name: exportRole },
  ]
}

interface Made {
  readonly spec: CanonicalMCPRegistrySpec
  readonly config: RenderedConfig
  readonly exported: ExportScope | undefined
  readonly deployment: Deployment
}

function children({ registry }: PlanInput, { spec, config, exported, deployment }: Made): PlannedChild[] {
  const { name, namespace = '' } = registry.metadata
  const place = { name, namespace }
  const access = exported && ownAccess(place, spec, exported)
  return [
    { kind: 'ServiceAccount', object: accountOf(place, spec) },
    ...(access === undefined
      ? []
      : [{ kind: 'Role', object: access.role } as const, { kind: 'RoleBinding', object: access.binding } as const]),
    { kind: 'ConfigMap', object: configMapOf(place, config.text) },
    { kind: 'Service', object: serviceOf(place) },
    { kind: 'Deployment', object: deployment },
  ]
}

function aggregateMaps(place: { name: string; namespace: string }, aggregates: readonly EntryAggregate[]): DataMaps {
  const all = aggregates.flatMap(({ entry, texts }) =>
    texts === undefined ? [] : [dataMaps({ ...place, first: aggregateName(place.name, entry), component: 'registry-aggregate' }, texts)],
  )
  return { wanted: all.flatMap(({ wanted }) => wanted) as ConfigMap[], unwanted: all.flatMap(({ unwanted }) => unwanted) }
}

function exportMaps(place: { name: string; namespace: string }, reported: ExportReport | undefined): DataMaps {
  if (reported?.texts === undefined) return { wanted: [], unwanted: [] }
  return dataMaps({ ...place, first: registryNames(place.name).export, component: 'registry-export' }, reported.texts)
}

function joined(all: readonly DataMaps[]): DataMaps {
  return { wanted: all.flatMap(({ wanted }) => wanted), unwanted: all.flatMap(({ unwanted }) => unwanted) }
}

/** More than one pod needs a store that they share. */
function replicasOf(spec: CanonicalMCPRegistrySpec, live: Deployment | undefined) {
  const wanted = spec.replicas ?? live?.spec?.replicas
  const isShared = spec.databaseConfig !== undefined || ('configYAML' in spec && 'database' in fixedPart(spec.configYAML))
  if ((wanted ?? 1) <= 1) return { replicas: spec.replicas, isSeveral: false, conditions: [] }
  const type = MCPRegistryCondition.SharedStore
  if (isShared) {
    const message = `${wanted} replicas share the database`
    return {
      replicas: spec.replicas,
      isSeveral: true,
      conditions: [{ type, status: 'True', reason: MCPRegistryReason.SharedStoreAvailable, message } as const],
    }
  }
  const message = `${wanted} replicas requested, one runs: several need a database. Set spec.databaseConfig.`
  return {
    replicas: 1,
    isSeveral: false,
    conditions: [{ type, status: 'False', reason: MCPRegistryReason.SharedStoreRequired, message } as const],
  }
}

/** The blocks of a configuration that a running server cannot take over. The rest of it is never looked at. */
function fixedPart(configYAML: string): { database?: unknown; storage?: unknown } {
  try {
    const value: unknown = parse(configYAML, { maxAliasCount: 100 })
    if (typeof value !== 'object' || value === null) return {}
    const { database, storage } = value as { database?: unknown; storage?: unknown }
    return { ...(database !== undefined && { database }), ...(storage !== undefined && { storage }) }
  } catch {
    return {} // the server says what is wrong with it
  }
}

function invalid(message: string): Blocker {
  return { condition: MCPRegistryCondition.SourceAvailable, reason: MCPRegistryReason.ValidationFailed, message }
}

function sourceBlockers(problems: readonly FieldProblem[]): Blocker[] {
  return problems.map(({ field, message }) => invalid(`${field} ${message}`))
}

function templateBlockers(problems: readonly TemplateProblem[]): Blocker[] {
  return problems.map(({ path, message }) => ({
    condition: MCPRegistryCondition.PodTemplateValid,
    reason: MCPRegistryReason.InvalidPodTemplateSpec,
    message: `${path} ${message}`,
  }))
}

/** Objects that may be missing without a word. */
function optionalObjects(spec: CanonicalMCPRegistrySpec): ReadonlySet<string> {
  const entries = 'registries' in spec ? spec.registries : []
  const refs = [
    ...entries.map(({ configMapRef }) => configMapRef),
    ...(spec.authConfig.oauth?.providers ?? []).map(({ caCertRef }) => caCertRef),
  ]
  return new Set(refs.flatMap((ref) => (ref?.optional ? [`ConfigMap ${ref.name}`] : [])))
}

function availability(missing: readonly string[], invalidReferences: readonly string[]): ConditionUpdate[] {
  const type = MCPRegistryCondition.SourceAvailable
  const wrong = invalidReferences.join('; ')
  if (missing.length > 0) {
    const message = `not found: ${missing.join(', ')}. Create what is missing, or correct the name`
    return [{ type, status: 'False', reason: MCPRegistryReason.SourceNotFound, message: wrong === '' ? message : `${message}; ${wrong}` }]
  }
  if (wrong !== '')
    return [{ type, status: 'False', reason: MCPRegistryReason.InvalidData, message: `${wrong}. Correct the object, or name another` }]
  return [{ type, status: 'True', reason: MCPRegistryReason.SourcesAvailable, message: 'all referenced objects exist' }]
}

function selectorConditions(aggregates: readonly EntryAggregate[]): ConditionUpdate[] {
  if (aggregates.length === 0) return []
  const type = MCPRegistryCondition.SourcesValid
  const refused = aggregates.flatMap((aggregate) => aggregate.refused ?? [])
  const [first] = refused
  if (first !== undefined)
    return [{ type, status: 'False', reason: first.reason, message: refused.map(({ message }) => message).join('; ') }]
  const maps = aggregates.flatMap((aggregate) => aggregate.maps)
  const failed = maps.filter(({ error }) => error !== undefined)
  if (failed.length > 0) return [{ type, status: 'False', reason: MCPRegistryReason.PartialSyncFailure, message: partialMessage(maps) }]
  if (maps.length === 0)
    return [
      {
        type,
        status: 'True',
        reason: MCPRegistryReason.NoConfigMaps,
        message: 'no ConfigMap has the labels that configMapSelector asks for: nothing is served from there',
      },
    ]
  const servers = aggregates.reduce((sum, aggregate) => sum + aggregate.servers, 0)
  return [{ type, status: 'True', reason: MCPRegistryReason.SourcesValid, message: `${servers} servers from ${maps.length} ConfigMaps` }]
}

const MAX_NAMED = 10

/** Lists the failed ConfigMaps; details stand in status.configMaps. */
export function partialMessage(maps: readonly { name: string; error?: string }[]): string {
  const failed = maps.filter(({ error }) => error !== undefined).map(({ name }) => name)
  const more = failed.length - MAX_NAMED
  const names = `${failed.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return `${failed.length} of ${maps.length} ConfigMaps failed: ${names}. The others are served; see status.configMaps.`
}

/** Published servers live in the store; one in the pod goes with the pod. */
function ephemeralCondition(spec: CanonicalMCPRegistrySpec): ConditionUpdate[] {
  const isManaged = 'registries' in spec && spec.registries.some(({ managed }) => managed !== undefined)
  const isKept = spec.databaseConfig !== undefined || spec.volumes.some((volume) => volume['name'] === STORAGE_VOLUME)
  if (!isManaged || isKept) return []
  const message = `published servers are lost with the pod: set spec.databaseConfig, or a volume named ${STORAGE_VOLUME} in spec.volumes`
  return [{ type: MCPRegistryCondition.StorageEphemeral, status: 'True', reason: MCPRegistryReason.EmptyDirStorage, message }]
}
