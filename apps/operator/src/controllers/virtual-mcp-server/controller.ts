import { type KubeObject, keyOf, type ObjectKey, or, type Predicate, type Source } from '@thv/kube'
import { VirtualMCPServerCondition as Condition } from '@thv/resources/kinds/virtual-mcp-server/constants'
import { configMapCache, roleBindingCache, roleCache, secretCache } from '../../caches/built-in-caches.ts'
import type { KindCache } from '../../caches/kind-cache.ts'
import type { OperatorCaches } from '../../caches/operator-caches.ts'
import { ownedBy, specChanged } from '../../caches/predicates.ts'
import { REFERENCE_INDEXES } from '../../caches/reference-indexes.ts'
import { proxySources } from '../../proxy/proxy-sources.ts'
import { referenceSources, referrersIn } from '../../references/reference-sources.ts'
import { externalAuthConfigCache } from '../../references/referenced-caches.ts'
import type { References } from '../../references/references.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { cache as remoteProxyCache } from '../mcp-remote-proxy/cache.ts'
import { cache as serverCache } from '../mcp-server/cache.ts'
import { cache as entryCache } from '../mcp-server-entry/cache.ts'
import { cache as definitionCache } from '../virtual-mcp-composite-tool-definition/cache.ts'
import { cache } from './cache.ts'
import { reconcileVirtualMcpServer, servingVirtualMcpServer } from './reconcile.ts'

const KIND = 'VirtualMCPServer'

export const controller: ControllerSpec = {
  name: 'virtualmcpserver',
  concurrency: 4,
  cache,
  refusedIn: 'Ready',
  serving: servingVirtualMcpServer,
  reconcile: reconcileVirtualMcpServer,
  sources(caches) {
    const servers = caches.of(cache)
    return [
      ...servers.self(or(specChanged, backendsReported)),
      ...proxySources(caches, KIND, servers as unknown as KindCache),
      ...caches.of(secretCache).owned(ownedBy(KIND)),
      ...caches.of(roleCache).owned(ownedBy(KIND)),
      ...caches.of(roleBindingCache).owned(ownedBy(KIND)),
      ...referenceSources(caches, servers),
      ...caches.of(definitionCache).mapped(referrersIn(servers, 'compositeTools'), specChanged),
      ...memberSources(caches),
    ]
  },
}

/** The virtual server itself reports its backends and conflicts; the phase follows. */
const backendsReported: Predicate = ({ object, old }) => {
  const reported = (of: KubeObject | undefined) => {
    const { discoveredBackends, conditions = [] } = (of as Reporting | undefined)?.status ?? {}
    const conflicts = conditions.find(({ type }) => type === Condition.ToolConflicts)
    return JSON.stringify([discoveredBackends, conflicts?.reason, conflicts?.message])
  }
  return reported(object) !== reported(old)
}

interface Reporting extends KubeObject {
  readonly status?: {
    readonly discoveredBackends?: unknown
    readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message: string }[]
    readonly url?: string
    readonly phase?: string
    readonly observedGeneration?: number
  }
}

/** Wakes the virtual servers of a member's group, also when something changes that an entry names. */
function memberSources(caches: OperatorCaches): Source[] {
  const servers = caches.of(cache)
  const entries = caches.of(entryCache)
  const authConfigs = caches.of(externalAuthConfigCache)
  const ofMember = (spec: typeof serverCache | typeof remoteProxyCache | typeof entryCache) => {
    const { references } = spec as { references?(object: KubeObject): References }
    return (member: KubeObject): ObjectKey[] =>
      (references?.(member).groups ?? []).flatMap((group) =>
        servers.byIndex(REFERENCE_INDEXES.groups, `${member.metadata.namespace}/${group}`).map(keyOf),
      )
  }
  const ofEntry = ofMember(entryCache)
  const through = (to: keyof References) => {
    const entriesOf = referrersIn(entries, to)
    return (object: KubeObject): ObjectKey[] =>
      entriesOf(object).flatMap((key) => {
        const entry = entries.get(key)
        return entry === undefined ? [] : ofEntry(entry)
      })
  }
  const ofAuthConfig = through('externalAuthConfigs')
  const throughAuthConfig = (object: KubeObject): ObjectKey[] =>
    referrersIn(
      authConfigs,
      'secrets',
    )(object).flatMap((key) => {
      const config = authConfigs.get(key)
      return config === undefined ? [] : ofAuthConfig(config)
    })
  return [
    ...caches.of(serverCache).mapped(ofMember(serverCache), memberChanged),
    ...caches.of(remoteProxyCache).mapped(ofMember(remoteProxyCache), memberChanged),
    ...entries.mapped(ofEntry, entryChanged),
    ...authConfigs.mapped(ofAuthConfig, specChanged),
    ...caches.of(configMapCache).mapped(through('configMaps')),
    ...caches.of(secretCache).mapped(through('secrets')),
    ...caches.of(secretCache).mapped(throughAuthConfig),
  ]
}

/** Its spec, or whether it can be called; its health does not matter here. */
const memberChanged: Predicate = or(specChanged, ({ type, object, old }) => {
  const hasUrl = (of: KubeObject | undefined) => Boolean((of as Reporting | undefined)?.status?.url)
  return type !== 'MODIFIED' || hasUrl(object) !== hasUrl(old)
})

/** Its spec, or what its own controller found out about that. */
const entryChanged: Predicate = or(specChanged, ({ type, object, old }) => {
  const verdict = (of: KubeObject | undefined) => {
    const { phase, observedGeneration } = (of as Reporting | undefined)?.status ?? {}
    return `${phase} ${observedGeneration}`
  }
  return type !== 'MODIFIED' || verdict(object) !== verdict(old)
})
