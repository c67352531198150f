import { compact, type Normalised, type ProblemList, problemList, unify } from '../../schema/normalize.ts'
import type { MCPRegistry } from './schema.ts'
import { DEFAULT_DATA_KEY } from './sources.ts'

type Spec = MCPRegistry['spec']
type RawSource = NonNullable<Spec['source']>
type RawEntry = NonNullable<Spec['registries']>[number]
type RawGit = NonNullable<RawEntry['git']>
type RawSelector = NonNullable<RawEntry['configMapSelector']>
type Format = 'toolhive' | 'upstream'

export type CanonicalGit = RawGit & { path: string }

export interface CanonicalSource {
  type: 'configMap' | 'git' | 'api'
  format: Format
  configMap?: { name: string; key: string }
  git?: CanonicalGit
  api?: { endpoint: string }
}

export type CanonicalSelector = RawSelector & { key: string; conflictStrategy: 'prefix' | 'priority' | 'error' }

export interface CanonicalRegistryEntry {
  name: string
  format: Format
  configMapRef?: { name: string; key: string; optional: boolean }
  configMapSelector?: CanonicalSelector
  git?: CanonicalGit
  api?: { endpoint: string }
  pvcRef?: { claimName: string; path: string }
  managed?: Record<string, never>
  syncPolicy?: { interval: string }
  filter?: NonNullable<RawEntry['filter']>
}

interface Common {
  displayName?: string
  api: { enabled: boolean }
  replicas?: number
  export?: {
    mode: 'server' | 'operator' | 'none'
    namespaces: string[]
    crossNamespaceGateway: 'referenceGrant' | 'allowedRoutes' | 'accepted'
  }
  enforceServers: boolean
  databaseConfig?: NonNullable<Spec['databaseConfig']>
  authConfig: NonNullable<Spec['authConfig']> & { mode: 'anonymous' | 'oauth' }
  pgpassSecretRef?: { name: string; key: string }
  volumes: Record<string, unknown>[]
  volumeMounts: Record<string, unknown>[]
  imagePullSecrets: { name: string }[]
  podTemplateSpec?: Record<string, unknown>
}

/** The three shapes stay apart: what one says cannot be said in another. Exactly one of the members tells which it is. */
export type CanonicalMCPRegistrySpec = Common &
  (
    | { source: CanonicalSource; syncPolicy?: { interval: string }; filter?: NonNullable<Spec['filter']> }
    | { registries: CanonicalRegistryEntry[] }
    | { configYAML: string }
  )

export function normaliseMcpRegistry(registry: Pick<MCPRegistry, 'spec'>): Normalised<CanonicalMCPRegistrySpec> {
  const problems = problemList()
  const { spec } = registry
  return { spec: { ...common(spec), ...shapeOf(spec, problems) } as CanonicalMCPRegistrySpec, problems: problems.all }
}

function shapeOf(spec: Spec, problems: ProblemList) {
  if (spec.registries) return { registries: spec.registries.map(entryOf) }
  if (spec.configYAML !== undefined) return { configYAML: spec.configYAML }
  return compact({ source: sourceOf(spec.source ?? {}, problems), syncPolicy: spec.syncPolicy, filter: spec.filter })
}

function sourceOf(source: RawSource, problems: ProblemList): CanonicalSource {
  const configMap = unify(problems, { 'spec.source.configMap': source.configMap, 'spec.source.configmap': source.configmap })
  const type = source.git ? 'git' : source.api ? 'api' : 'configMap'
  if (type === 'configMap' && !configMap) problems.add('spec.source', 'missing', 'spec.source must have one of configMap, git and api')
  return compact({
    type,
    format: source.format ?? 'toolhive',
    configMap: configMap && { name: configMap.name, key: configMap.key ?? DEFAULT_DATA_KEY },
    git: source.git && gitOf(source.git),
    api: source.api,
  }) as CanonicalSource
}

function entryOf(entry: RawEntry): CanonicalRegistryEntry {
  const { configMapRef, configMapSelector, pvcRef } = entry
  return compact({
    name: entry.name,
    format: entry.format ?? 'toolhive',
    configMapRef: configMapRef && {
      name: configMapRef.name,
      key: configMapRef.key ?? DEFAULT_DATA_KEY,
      optional: configMapRef.optional ?? false,
    },
    configMapSelector: configMapSelector && {
      ...configMapSelector,
      key: configMapSelector.key ?? DEFAULT_DATA_KEY,
      conflictStrategy: configMapSelector.conflictStrategy ?? 'prefix',
    },
    git: entry.git && gitOf(entry.git),
    api: entry.api,
    pvcRef: pvcRef && { claimName: pvcRef.claimName, path: pvcRef.path ?? DEFAULT_DATA_KEY },
    managed: entry.managed,
    syncPolicy: entry.syncPolicy,
    filter: entry.filter,
  }) as CanonicalRegistryEntry
}

function gitOf(git: RawGit): CanonicalGit {
  return { ...git, path: git.path ?? DEFAULT_DATA_KEY }
}

function common(spec: Spec): Common {
  return compact({
    displayName: spec.displayName,
    api: { enabled: spec.api?.enabled ?? true },
    replicas: spec.replicas,
    export: spec.export && exportOf(spec.export),
    enforceServers: spec.enforceServers ?? false,
    databaseConfig: spec.databaseConfig,
    authConfig: { ...spec.authConfig, mode: spec.authConfig?.mode ?? 'anonymous' },
    pgpassSecretRef: spec.pgpassSecretRef,
    volumes: spec.volumes ?? [],
    volumeMounts: spec.volumeMounts ?? [],
    imagePullSecrets: spec.imagePullSecrets ?? [],
    podTemplateSpec: spec.podTemplateSpec,
  }) as Common
}

function exportOf(policy: NonNullable<Spec['export']>): NonNullable<Common['export']> {
  const mode = policy.mode ?? 'server'
  return {
    mode,
    namespaces: policy.namespaces ?? [],
    // The operator must hold the stricter rule; the server sees only routes that a gateway accepted.
    crossNamespaceGateway: policy.crossNamespaceGateway ?? (mode === 'operator' ? 'referenceGrant' : 'accepted'),
  }
}
