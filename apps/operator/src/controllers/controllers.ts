import { errorMessage } from '@thv/kernel/errors'
import {
  annotationsChanged,
  type Controller,
  controllerOf,
  createController,
  deletionStarted,
  done,
  formatKey,
  generationChanged,
  KubeApiError,
  type KubeEvent,
  type KubeObject,
  type ObjectKey,
  type Outcome,
  or,
  type Predicate,
  type ReconcileContext,
  type ReconcileReport,
  type Source,
} from '@thv/kube'
import type { MCPGroup } from '@thv/resources/kinds/mcp-group/schema'
import { MCPServerAnnotation } from '@thv/resources/kinds/mcp-server/constants'
import { API_GROUP } from '@thv/resources/schema/kind-definition'
import type { KindCache } from '../caches/kind-cache.ts'
import type { OperatorCaches } from '../caches/operator-caches.ts'
import { workloadOf } from '../caches/operator-caches.ts'
import type { Env } from '../environment.ts'
import { workloadsThatName } from '../proxy/names.ts'
import { referencedBy, referrersIn } from '../references/reference-keys.ts'
import {
  referencesOfRemoteProxy,
  referencesOfServer,
  referencesOfServerEntry,
  referencesOfVirtualServer,
} from '../references/references.ts'
import { reconcileMcpExternalAuthConfig } from './mcp-external-auth-config/reconcile.ts'
import { reconcileMcpGroup } from './mcp-group/reconcile.ts'
import { reconcileMcpRemoteProxy } from './mcp-remote-proxy/reconcile.ts'
import { reconcileMcpServer } from './mcp-server/reconcile.ts'
import { reconcileMcpServerEntry } from './mcp-server-entry/reconcile.ts'
import { reconcileMcpToolConfig } from './mcp-tool-config/reconcile.ts'
import { reconcileNotImplemented } from './not-implemented/reconcile.ts'

export interface ControllersOptions {
  readonly drainMs: number
  readonly onReconcile?: (controller: string, report: ReconcileReport) => void
}

type ReconcileKind = (key: ObjectKey, env: Env, context: ReconcileContext) => Promise<Outcome>

interface ControllerPlan {
  readonly name: string
  readonly reconcile: ReconcileKind
  readonly sources: readonly Source[]
  readonly concurrency: number
}

export function createControllers(env: Env, { drainMs, onReconcile }: ControllersOptions): Controller[] {
  return controllerPlans(env.caches).map(({ name, reconcile, sources, concurrency }) =>
    createController({
      name,
      reconcile: (key, context) => reconcile(key, env, context).catch(unlessNamespaceGoes),
      sources,
      concurrency,
      drainMs,
      clock: env.clock,
      queue: { backoff: { baseMs: 100, maxMs: 300_000 } },
      onReconcile: (report) => onReconcile?.(name, report),
      onError: (error, key) =>
        env.log.warn('a reconcile failed; trying again', { controller: name, object: key && formatKey(key), error: errorMessage(error) }),
    }),
  )
}

/** In a namespace that is being deleted nothing can be made any more, and nothing needs to. */
function unlessNamespaceGoes(error: unknown): Outcome {
  if (error instanceof KubeApiError && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')) return done
  throw error
}

/** A write to the status, which the controller itself does, wakes nobody. */
const specChanged: Predicate = or(generationChanged, deletionStarted)

/** All that members look at: whether their group is there and ready. Who else belongs to it is none of their business. */
const groupChanged: Predicate<MCPGroup> = or<MCPGroup>(
  deletionStarted,
  ({ type, object, old }) => type !== 'MODIFIED' || object.status?.phase !== old?.status?.phase,
)

/** Exactly whom each event concerns: nothing is listed and filtered, and a status that changes wakes nobody who does not read it. */
export function controllerPlans(caches: OperatorCaches): ControllerPlan[] {
  const { servers, remoteProxies, groups, virtualServers, toolConfigs, externalAuthConfigs, serverEntries } = caches
  return [
    {
      name: 'mcpserver',
      reconcile: reconcileMcpServer,
      concurrency: 16,
      sources: [
        ...servers.self(or(specChanged, annotationsChanged(Object.values(MCPServerAnnotation)))),
        ...childSources(caches, 'MCPServer'),
        ...caches.networkPolicies.owned(ownedBy('MCPServer')),
        ...caches.roles.owned(ownedBy('MCPServer')),
        ...caches.roleBindings.owned(ownedBy('MCPServer')),
        ...caches.statefulSets.owned(ownedBy('MCPServer')),
        ...caches.runnerEvents.mapped(ownerOfEvent, newsOfEvent),
        ...referenceSources(caches, servers),
      ],
    },
    {
      name: 'mcpremoteproxy',
      reconcile: reconcileMcpRemoteProxy,
      concurrency: 8,
      sources: [...remoteProxies.self(specChanged), ...childSources(caches, 'MCPRemoteProxy'), ...referenceSources(caches, remoteProxies)],
    },
    {
      name: 'mcpgroup',
      reconcile: reconcileMcpGroup,
      concurrency: 4,
      sources: [
        ...groups.self(specChanged),
        ...servers.mapped(referencedBy(referencesOfServer, 'groups'), specChanged),
        ...remoteProxies.mapped(referencedBy(referencesOfRemoteProxy, 'groups'), specChanged),
        ...serverEntries.mapped(referencedBy(referencesOfServerEntry, 'groups'), specChanged),
      ],
    },
    {
      name: 'mcptoolconfig',
      reconcile: reconcileMcpToolConfig,
      concurrency: 4,
      sources: [
        ...toolConfigs.self(specChanged),
        ...servers.mapped(referencedBy(referencesOfServer, 'toolConfigs'), specChanged),
        ...remoteProxies.mapped(referencedBy(referencesOfRemoteProxy, 'toolConfigs'), specChanged),
        ...virtualServers.mapped(referencedBy(referencesOfVirtualServer, 'toolConfigs'), specChanged),
      ],
    },
    {
      name: 'mcpexternalauthconfig',
      reconcile: reconcileMcpExternalAuthConfig,
      concurrency: 4,
      sources: [
        ...externalAuthConfigs.self(specChanged),
        ...caches.secrets.mapped(referrersIn(externalAuthConfigs, 'secrets')),
        ...servers.mapped(referencedBy(referencesOfServer, 'externalAuthConfigs'), specChanged),
        ...remoteProxies.mapped(referencedBy(referencesOfRemoteProxy, 'externalAuthConfigs'), specChanged),
        ...serverEntries.mapped(referencedBy(referencesOfServerEntry, 'externalAuthConfigs'), specChanged),
        ...virtualServers.mapped(referencedBy(referencesOfVirtualServer, 'externalAuthConfigs'), specChanged),
      ],
    },
    {
      name: 'mcpserverentry',
      reconcile: reconcileMcpServerEntry,
      concurrency: 4,
      sources: [...serverEntries.self(specChanged), ...referenceSources(caches, serverEntries)],
    },
    ...caches.notImplemented.map((kind) => ({
      name: kind.type.kind.toLowerCase(),
      reconcile: reconcileNotImplemented(kind),
      concurrency: 1,
      sources: kind.cache.self(specChanged),
    })),
  ]
}

const ownerOfEvent = ({ metadata, regarding }: KubeEvent): ObjectKey[] =>
  regarding?.kind === 'MCPServer' ? [{ namespace: metadata.namespace ?? '', name: regarding.name ?? '' }] : []

/** A repetition tells nothing new unless another Event came in between; one that expires tells nothing at all. */
const newsOfEvent: Predicate<KubeEvent> = ({ type }) => type !== 'DELETED'

const ownedBy = (ownerKind: string) => ({ group: API_GROUP, ownerKind })

/** What both workload kinds own, and the pods that tell how they fare. */
function childSources(caches: OperatorCaches, kind: 'MCPServer' | 'MCPRemoteProxy'): Source[] {
  const isOfKind = kind === 'MCPServer' ? caches.servers : caches.remoteProxies
  /** Pods carry the name of their workload; the two kinds may have workloads of one name, so it must exist here. */
  const workloads = (object: KubeObject): ObjectKey[] => {
    const { namespace = '', labels } = object.metadata
    const key = { namespace, name: labels?.['toolhive-name'] ?? '' }
    return workloadOf(object).length > 0 && isOfKind.get(key) !== undefined ? [key] : []
  }
  return [
    ...caches.deployments.owned(ownedBy(kind)),
    ...caches.services.owned(ownedBy(kind)),
    ...caches.configMaps.owned(ownedBy(kind)),
    ...caches.serviceAccounts.owned(ownedBy(kind)),
    ...caches.pods.mapped(workloads),
    ...freedNames(caches, kind),
  ]
}

/** A workload whose names others have waits for them: when such an object goes, its turn has come. */
function freedNames(caches: OperatorCaches, kind: 'MCPServer' | 'MCPRemoteProxy'): Source[] {
  const workloads: Pick<KindCache<KubeObject>, 'get'> = kind === 'MCPServer' ? caches.servers : caches.remoteProxies
  const waiting = (object: KubeObject): ObjectKey[] => {
    const { namespace = '', name } = object.metadata
    if (controllerOf(object)?.kind === kind) return [] // its own
    return workloadsThatName(kind, name)
      .map((workload) => ({ namespace, name: workload }))
      .filter((key) => workloads.get(key) !== undefined)
  }
  const gone: Predicate = ({ type }) => type === 'DELETED'
  return [
    ...caches.deployments.mapped(waiting, gone),
    ...caches.services.mapped(waiting, gone),
    ...caches.configMaps.mapped(waiting, gone),
    ...caches.serviceAccounts.mapped(waiting, gone),
    ...caches.roles.mapped(waiting, gone),
    ...caches.roleBindings.mapped(waiting, gone),
    ...caches.networkPolicies.mapped(waiting, gone),
  ]
}

/** What workloads and entries are built from, judged by what it says and not by its status; through an MCPExternalAuthConfig also the Secrets and ConfigMaps that it names. */
function referenceSources<T extends KubeObject>(caches: OperatorCaches, workloads: Parameters<typeof referrersIn<T>>[0]): Source[] {
  const ofAuthConfig = referrersIn(workloads, 'externalAuthConfigs')
  const throughAuthConfig = (kind: 'secrets' | 'configMaps') => {
    const authConfigsOf = referrersIn(caches.externalAuthConfigs, kind)
    return (object: KubeObject): ObjectKey[] =>
      authConfigsOf(object).flatMap((key) => {
        const config = caches.externalAuthConfigs.get(key)
        return config === undefined ? [] : ofAuthConfig(config)
      })
  }
  return [
    ...caches.groups.mapped(referrersIn(workloads, 'groups'), groupChanged),
    ...caches.toolConfigs.mapped(referrersIn(workloads, 'toolConfigs'), specChanged),
    ...caches.externalAuthConfigs.mapped(ofAuthConfig, specChanged),
    ...caches.configMaps.mapped(referrersIn(workloads, 'configMaps')),
    ...caches.secrets.mapped(referrersIn(workloads, 'secrets')),
    ...caches.configMaps.mapped(throughAuthConfig('configMaps')),
    ...caches.secrets.mapped(throughAuthConfig('secrets')),
  ]
}
