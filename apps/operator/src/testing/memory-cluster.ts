import { TestClock } from '@thv/kernel/clock'
import {
  type CallOptions,
  formatKey,
  type JsonPatchOp,
  KubeApiError,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type Patch,
  type ResourceType,
} from '@thv/kube'
import { createLogger } from '@thv/telemetry/log'
import { WORKLOAD_INDEX, workloadOf } from '../caches/built-in-caches.ts'
import type { CacheSpec } from '../caches/cache-spec.ts'
import type { KindCache, Listing } from '../caches/kind-cache.ts'
import { type OperatorCaches, referringKinds } from '../caches/operator-caches.ts'
import { indexValues, REFERENCE_INDEXES } from '../caches/reference-indexes.ts'
import { CONTROLLERS } from '../controllers/controllers.ts'
import type { Env, OperatorEvent } from '../environment.ts'
import { type OperatorSettings, operatorSettings } from '../operator-settings.ts'
import type { References } from '../references/references.ts'

interface Written {
  readonly plural: string
  readonly name: string
  readonly subresource: string | undefined
}

export interface MemoryCluster {
  readonly env: Env
  readonly clock: TestClock
  /** The writes of the operator, in order. */
  readonly writes: Written[]
  readonly events: (OperatorEvent & { readonly name: string })[]
  /** Puts an object there as somebody else would, with metadata filled in; an object that was there gets a new generation. */
  put(object: KubeObject & { kind: string }): void
  remove(kind: string, name: string): void
  object<T extends KubeObject = KubeObject>(kind: string, name: string): T | undefined
  /** By plural: kinds that are not, or cannot be, listed. */
  readonly unlisted: Map<string, Listing>
  /** Runs before each write: what somebody else does meanwhile. */
  meanwhile: () => void
}

const PLURALS: Readonly<Record<string, string>> = {
  MCPServer: 'mcpservers',
  MCPRemoteProxy: 'mcpremoteproxies',
  MCPGroup: 'mcpgroups',
  VirtualMCPServer: 'virtualmcpservers',
  VirtualMCPCompositeToolDefinition: 'virtualmcpcompositetooldefinitions',
  MCPToolConfig: 'mcptoolconfigs',
  MCPExternalAuthConfig: 'mcpexternalauthconfigs',
  MCPServerEntry: 'mcpserverentries',
  MCPRegistry: 'mcpregistries',
  Secret: 'secrets',
  ConfigMap: 'configmaps',
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
  Pod: 'pods',
}

/** Caches and client over one map of objects: for reconcilers that read from caches and write status and finalizers. */
export function memoryCluster(settings: Partial<OperatorSettings> = {}): MemoryCluster {
  const objects = new Map<string, KubeObject>()
  const clock = new TestClock(Date.parse('2026-03-01T10:00:00Z'))
  const writes: Written[] = []
  const events: (OperatorEvent & { name: string })[] = []
  const unlisted = new Map<string, Listing>()
  let version = 100
  const idOf = (plural: string, key: ObjectKey) => `${plural}:${formatKey(key)}`

  function write(id: string, object: KubeObject): KubeObject {
    const next = structuredClone(object)
    next.metadata.resourceVersion = String(++version)
    objects.set(id, next)
    return structuredClone(next)
  }

  const client = {
    create: async (type: ResourceType, object: KubeObject) => {
      const id = idOf(type.plural, keyOf(object))
      if (objects.has(id)) throw refusal(409, 'AlreadyExists')
      return write(id, object)
    },
    update: async (type: ResourceType, object: KubeObject) => {
      const id = idOf(type.plural, keyOf(object))
      if (objects.get(id)?.metadata.resourceVersion !== object.metadata.resourceVersion) throw refusal(409, 'Conflict')
      return write(id, object)
    },
    tryGet: async (type: ResourceType, key: ObjectKey) => structuredClone(objects.get(idOf(type.plural, key))),
    patch: async (type: ResourceType, key: ObjectKey, patch: Patch, options: CallOptions = {}) => {
      cluster.meanwhile()
      const id = idOf(type.plural, key)
      const before = objects.get(id)
      if (before === undefined) throw refusal(404, 'NotFound')
      if (patch.kind !== 'json') throw new TypeError('only JSON patches here')
      const next = structuredClone(before)
      for (const op of patch.ops) applyOp(next, op)
      if (next.metadata.resourceVersion !== before.metadata.resourceVersion) throw refusal(409, 'Conflict')
      next.metadata.resourceVersion = String(++version)
      writes.push({ plural: type.plural, name: key.name, subresource: options.subresource })
      if (next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0) objects.delete(id)
      else objects.set(id, next)
      return structuredClone(next)
    },
  }

  function cacheOf(plural: string, referencesOf?: (object: KubeObject) => References) {
    const list = () => [...objects].filter(([id]) => id.startsWith(`${plural}:`)).map(([, object]) => object)
    return {
      get: (key: ObjectKey) => objects.get(idOf(plural, key)),
      list,
      listing: () => unlisted.get(plural) ?? { state: 'complete' },
      byIndex(index: string, value: string) {
        if (index === WORKLOAD_INDEX) return list().filter((object) => workloadOf(object).includes(value))
        const kind = (Object.keys(REFERENCE_INDEXES) as (keyof References)[]).find((name) => REFERENCE_INDEXES[name] === index)
        if (kind === undefined || referencesOf === undefined) throw new RangeError(`no index ${index}`)
        return list().filter((object) => indexValues(referencesOf, kind)(object).includes(value))
      },
    } as unknown as KindCache
  }

  const ofSpec = ({ type, references }: CacheSpec) => cacheOf(type.plural, references)
  const caches = {
    of: ofSpec,
    referring: (to: keyof References) =>
      referringKinds(
        CONTROLLERS.map(({ cache }) => [cache, ofSpec(cache)] as const),
        to,
      ),
    configMapContent: async (key: ObjectKey) => {
      const found = objects.get(idOf('configmaps', key)) as (KubeObject & { data?: Record<string, string> }) | undefined
      return found && { uid: found.metadata.uid ?? '', resourceVersion: found.metadata.resourceVersion ?? '', data: found.data ?? {} }
    },
  } as unknown as OperatorCaches

  const cluster: MemoryCluster = {
    env: {
      client: client as unknown as Env['client'],
      caches,
      children: {} as Env['children'],
      events: { record: (regarding, event) => void events.push({ ...event, name: regarding.metadata.name }) },
      settings: { ...operatorSettings(FLAGS, { POD_NAMESPACE: 'operator' }, { openshift: false }), ...settings },
      clock,
      log: createLogger({ level: 'error', format: 'json', write: () => {} }),
    },
    clock,
    writes,
    events,
    unlisted,
    meanwhile: () => {},
    put(object) {
      const { metadata } = object
      const id = idOf(PLURALS[object.kind] ?? '', { namespace: 'team', name: metadata.name })
      const old = objects.get(id)
      const full = { namespace: 'team', uid: old?.metadata.uid ?? `uid-${++version}`, generation: (old?.metadata.generation ?? 0) + 1 }
      const kept = old?.metadata.finalizers ? { finalizers: old.metadata.finalizers } : {}
      objects.set(id, { ...old, ...object, metadata: { ...kept, ...full, ...metadata, resourceVersion: String(++version) } })
    },
    remove: (kind, name) => void objects.delete(idOf(PLURALS[kind] ?? '', { namespace: 'team', name })),
    object: <T extends KubeObject>(kind: string, name: string) =>
      objects.get(idOf(PLURALS[kind] ?? '', { namespace: 'team', name })) as T | undefined,
  }
  return cluster
}

const FLAGS = {
  metricsBindAddress: '0',
  healthProbeBindAddress: '0',
  webhookBindAddress: '0',
  leaderElect: false,
  leaseDuration: 15_000,
  denyPrivateRemotes: false,
  allowLoopbackRemotes: false,
}

function applyOp(root: object, op: JsonPatchOp): void {
  const path = op.path.slice(1).split('/')
  const last = path.pop() ?? ''
  const node = path.reduce((at, part) => at[part] as Record<string, unknown>, root as Record<string, unknown>)
  if (op.op === 'test' && JSON.stringify(node[last]) !== JSON.stringify(op.value)) throw refusal(422, 'Invalid')
  if (op.op === 'remove' && Array.isArray(node)) node.splice(Number(last), 1)
  if (op.op !== 'add' && op.op !== 'replace') return
  if (Array.isArray(node) && last === '-') node.push(op.value)
  else node[last] = op.value
}

function refusal(status: number, reason: string): KubeApiError {
  return new KubeApiError({ call: { verb: 'patch', target: 'objects' }, status, body: { reason } })
}
