import {
  type Condition,
  type ConfigMap,
  configMaps,
  type Deployment,
  deployments,
  events,
  getCondition,
  type KubeEvent,
  type KubeObject,
  networkPolicies,
  type Pod,
  pods,
  type ResourceType,
  roleBindings,
  roles,
  type StatefulSet,
  serviceAccounts,
  services,
  setControllerReference,
  statefulSets,
} from '@thv/kube'
import { type MCPRemoteProxy, mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { eventually, type OperatorUnderTest } from './operator-harness.ts'
import { createFresh } from './second-try.ts'
import { allSeen, standstill } from './standstill.ts'

/* Steps that tests of workloads share, as an admin of the cluster would do them. */

type Workload = (MCPServer | MCPRemoteProxy) & { status?: WorkloadStatus }

export interface WorkloadStatus {
  readonly phase?: string
  readonly message?: string
  readonly url?: string
  readonly observedGeneration?: number
  readonly replicas?: number
  readonly readyReplicas?: number
  readonly selector?: string
  readonly [member: string]: unknown
}

export const OWNED_TYPES: readonly ResourceType[] = [
  serviceAccounts,
  roles,
  roleBindings,
  configMaps,
  networkPolicies,
  services,
  deployments,
]

export type WorkloadSteps = ReturnType<typeof workloadSteps>

export function workloadSteps(
  operator: Pick<OperatorUnderTest, 'admin' | 'namespace' | 'manager' | 'hasControllers'>,
  kind: 'MCPServer' | 'MCPRemoteProxy',
) {
  const { admin, namespace } = operator
  const watched = { ...operator, namespaces: [namespace] }
  const type = (kind === 'MCPServer' ? mcpServerType : mcpRemoteProxyType) as ResourceType<Workload>
  const at = (name: string) => ({ namespace, name })

  const get = async (name: string) => await admin.get(type, at(name))
  const create = async (name: string, spec: object, metadata: object = {}): Promise<Workload> =>
    await createFresh(admin, type, { metadata: { ...metadata, ...at(name) }, spec } as Workload)
  const edit = async (name: string, spec: object) => await admin.patch(type, at(name), { kind: 'merge', body: { spec } })
  const annotate = async (name: string, annotations: object) =>
    await admin.patch(type, at(name), { kind: 'merge', body: { metadata: { annotations } } })
  const condition = async (name: string, which: string): Promise<Condition | undefined> =>
    getCondition((await get(name)).status?.['conditions'] as never, which)

  /** Waits for the condition to have that reason. */
  const hasReason = async (name: string, which: string, reason: string): Promise<Condition> =>
    await eventually(`${which} of ${name} has the reason ${reason}`, async () => {
      const now = await condition(name, which)
      if (now?.reason !== reason) throw new Error(`it is ${JSON.stringify(now)}`)
      return now
    })

  /** Waits until the status is about the spec as it is now. */
  const settled = async (name: string, phase?: string) =>
    await eventually(`${name} is settled${phase === undefined ? '' : ` and ${phase}`}`, async () => {
      const { metadata, status } = await get(name)
      if (status?.observedGeneration !== metadata.generation) throw new Error('the status is about an older spec')
      if (phase !== undefined && status?.phase !== phase) throw new Error(`it is ${status?.phase}: ${status?.message}`)
      return status
    })

  const deployment = async (name: string): Promise<Deployment> =>
    await eventually(`Deployment ${name}`, () => admin.tryGet(deployments, at(name)))
  const runConfig = async (name: string): Promise<Record<string, unknown>> => {
    const map: ConfigMap = await eventually(`the RunConfig of ${name}`, () => admin.tryGet(configMaps, at(`${name}-runconfig`)))
    return JSON.parse(map.data?.['runconfig.json'] ?? '{}') as Record<string, unknown>
  }
  const template = async (name: string) => JSON.stringify((await deployment(name)).spec?.template)

  const proxyPods = async (name: string): Promise<Pod[]> =>
    (await admin.list(pods, { namespace, labelSelector: `app=${kind.toLowerCase()},toolhive-name=${name}` })).items.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    )
  /** The newest, once the scheduler, which finds no node, has had its say: later it would speak over what a test says of the pod. */
  const onePod = async (name: string): Promise<Pod> =>
    await eventually(`a proxy pod of ${name}`, async () => {
      const [newest] = (await proxyPods(name)).toSorted((a, b) => age(b) - age(a))
      return isLookedAt(newest) && newest
    })

  /** The first pod of the MCP server. */
  const serverPod = async (name: string): Promise<Pod | undefined> => await admin.tryGet(pods, at(`${name}-0`))

  /** As the kubelet would say it. */
  const sayOfPod = async (pod: Pod, status: NonNullable<Pod['status']>) =>
    await admin.patch(pods, at(pod.metadata.name), { kind: 'merge', body: { status } }, { subresource: 'status' })

  /** As the runner would do once it runs. */
  const playRunner = async (name: string): Promise<Pod> => {
    const owner = { object: await get(name), type }
    const labels = { app: name, toolhive: 'true', 'toolhive-name': name, 'toolhive-basename': name }
    const object: StatefulSet = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { ...at(name), labels },
      spec: {
        serviceName: `mcp-${name}-headless`,
        replicas: 1,
        selector: { matchLabels: { app: name } },
        template: { metadata: { labels }, spec: { containers: [{ name: 'mcp', image: 'example.test/server:1' }] } },
      },
    }
    await admin.create(statefulSets, setControllerReference(object, owner))
    return await eventually(`the pod of StatefulSet ${name}`, async () => {
      const pod = await admin.tryGet(pods, at(`${name}-0`))
      return isLookedAt(pod) && pod
    })
  }

  /** All that the workload owns, by kind and name. */
  const owned = async (name: string): Promise<KubeObject[]> => {
    const { uid } = (await get(name)).metadata
    const lists = await Promise.all(OWNED_TYPES.map(async (each) => (await admin.list(each, { namespace })).items))
    return lists
      .flat()
      .filter(({ metadata }) => metadata.ownerReferences?.some((reference) => reference.uid === uid))
      .toSorted((a, b) => `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`))
  }

  /** Of the operator, about one workload. */
  const eventsOf = async (name: string): Promise<KubeEvent[]> =>
    (await admin.list(events, { namespace })).items.filter(({ regarding }) => regarding?.kind === kind && regarding.name === name)

  /** Waits until all controllers are idle, and stay so for a while. */
  const quiet = async (): Promise<void> => await standstill(watched)
  /** Waits until the operator knows of what the test has made: what is made next may else be seen first. */
  const seen = async (): Promise<void> => await allSeen(watched)

  /** The garbage collector removes what the file made: addresses of Services are few. */
  const cleanUp = async () => void (await admin.deleteCollection(type, { namespace }))

  const golden = async (name: string): Promise<string> => goldenOf(await get(name), await owned(name))

  return {
    type,
    at,
    get,
    create,
    edit,
    annotate,
    condition,
    hasReason,
    settled,
    deployment,
    runConfig,
    template,
    proxyPods,
    onePod,
    serverPod,
    podType: pods,
    sayOfPod,
    playRunner,
    owned,
    eventsOf,
    quiet,
    seen,
    cleanUp,
    golden,
  }
}

const isLookedAt = (pod: Pod | undefined) => (pod?.status?.conditions ?? []).length > 0
const age = ({ metadata }: KubeObject) => Date.parse(metadata.creationTimestamp ?? '')

/** Live objects without what differs from run to run; hashes that go over such things become words. */
export function goldenOf(owner: KubeObject, objects: readonly KubeObject[]): string {
  const text = JSON.stringify(objects.map(readable).map(withoutServerFields), undefined, 2)
  const { uid = '', namespace = '' } = owner.metadata
  return `${text
    .replaceAll(uid, 'OWNER-UID')
    .replaceAll(namespace, 'NAMESPACE')
    .replaceAll(/(applied-hash|checksum|secrets-hash)": "[0-9a-f]+"/g, '$1": "HASH"')}\n`
}

function readable(object: KubeObject & { data?: Record<string, string> }): KubeObject {
  const text = object.data?.['runconfig.json']
  return text === undefined ? object : ({ ...object, data: { ...object.data, 'runconfig.json': JSON.parse(text) } } as KubeObject)
}

const BY_SERVER = new Set(['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields', 'selfLink'])
const ALLOCATED = new Set(['clusterIP', 'clusterIPs', 'nodePort', 'healthCheckNodePort'])

function withoutServerFields(object: KubeObject): object {
  const { metadata, ...rest } = object
  const { status: _, ...own } = rest as Record<string, unknown>
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => key !== 'deployment.kubernetes.io/revision')
  const kept = Object.fromEntries(
    Object.entries({ ...metadata, annotations: Object.fromEntries(annotations) }).filter(([key]) => !BY_SERVER.has(key)),
  )
  return without({ ...own, metadata: kept }, ALLOCATED) as object
}

/** With members in order of their names: servers differ in theirs. */
function without(value: unknown, names: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => without(item, names))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !names.has(key))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, without(member, names)]),
  )
}
