import { connect, isIP } from 'node:net'
import { errorMessage } from '@thv/kernel/errors'
import {
  type Condition,
  createKubeClient,
  getCondition,
  type KubeClient,
  type KubeObject,
  loadKubeconfig,
  type Pod,
  pods,
  type ResourceType,
  services,
} from '@thv/kube'
import { podLogs } from '@thv/kube/streams/pod-logs'
import { mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import { mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { mcpServerEntryType } from '@thv/resources/kinds/mcp-server-entry/schema'
import { mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import { virtualMcpCompositeToolDefinitionType } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { report } from './report.ts'
import type { StoryContext } from './story.ts'

/** One of our kinds, as a story sees it. */
export interface Resource extends KubeObject {
  spec?: Record<string, unknown>
  status?: ResourceStatus
}

export interface ResourceStatus {
  phase?: string
  message?: string
  url?: string
  observedGeneration?: number
  authzConfigHash?: string
  replicas?: number
  readyReplicas?: number
  conditions?: readonly Condition[]
  referencingWorkloads?: readonly { kind: string; name: string }[]
}

export const SERVER = mcpServerType as ResourceType<Resource>
export const REMOTE = mcpRemoteProxyType as ResourceType<Resource>
export const REGISTRY = mcpRegistryType as unknown as ResourceType<Resource>
export const EXTERNAL_AUTH = mcpExternalAuthConfigType as unknown as ResourceType<Resource>
export const ENTRY = mcpServerEntryType as unknown as ResourceType<Resource>
export const TOOLS = mcpToolConfigType as ResourceType<Resource>
export const GROUP = mcpGroupType as ResourceType<Resource>
export const VIRTUAL = virtualMcpServerType as unknown as ResourceType<Resource>
export const DEFINITION = virtualMcpCompositeToolDefinitionType as unknown as ResourceType<Resource>

/** Steps that stories share. Closing it ends the client, not what was made. */
export interface World extends StoryContext, AsyncDisposable {
  readonly client: KubeClient
  at(name: string): { namespace: string; name: string }
  create(type: ResourceType<Resource>, name: string, spec: object): Promise<Resource>
  edit(type: ResourceType<Resource>, name: string, spec: object): Promise<Resource>
  /** Waits until the status is about the spec as it is now, and says that phase. */
  reaches(type: ResourceType<Resource>, name: string, phase: string): Promise<ResourceStatus>
  /** Waits until the condition has that reason. */
  hasReason(type: ResourceType<Resource>, name: string, which: { condition: string; reason: string }): Promise<Condition>
  /** Required form of a `status.url`. */
  urlAt(service: string, port: number, rest: string): Promise<string>
  /** `status.url`, as clients outside the cluster have to write it, once something accepts connections there. */
  outside(url: string | undefined): Promise<string>
  /** Pods that are not going. */
  proxyPods(name: string): Promise<Pod[]>
  serverPods(name: string): Promise<Pod[]>
  /** Runs a program of our image in a pod to its end, and returns what it printed. Fails when the program did. */
  runInPod(name: string, command: readonly string[]): Promise<string>
  /** Waits until `check` gives something true; otherwise fails with `what`, what it threw last, and the state of the namespace. */
  eventually<T>(what: string, check: () => Promise<T | undefined | false>, limitMs?: number): Promise<T>
}

/** Several stories run at once, and each server of theirs is three processes: a small machine needs a while. */
const PATIENCE_MS = 180_000
const INTERVAL_MS = 200

export async function openWorld(context: StoryContext): Promise<World> {
  const { namespace } = context
  const client = createKubeClient(await loadKubeconfig({ path: context.kubeconfigPath }))
  const at = (name: string) => ({ namespace, name })

  const eventually: World['eventually'] = async (what, check, limitMs = PATIENCE_MS) => {
    const deadline = performance.now() + limitMs
    for (;;) {
      let last: unknown = 'it gave nothing'
      try {
        const result = await check()
        if (result !== undefined && result !== false) return result
      } catch (error) {
        last = error
      }
      if (performance.now() > deadline)
        throw new Error(`never happened: ${what} (${errorMessage(last)})\n${await report(client, namespace)}`, { cause: last })
      await pause()
    }
  }

  const livePods = async (labelSelector: string) =>
    (await client.list(pods, { namespace, labelSelector })).items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)

  return {
    ...context,
    client,
    at,
    eventually,
    create: (type, name, spec) => client.create(type, { metadata: at(name), spec: { ...spec } }),
    edit: (type, name, spec) => client.patch(type, at(name), { kind: 'merge', body: { spec } }),

    reaches: (type, name, phase) =>
      eventually(`${type.kind} ${name} is ${phase}`, async () => {
        const { metadata, status } = await client.get(type, at(name))
        if (status?.observedGeneration !== metadata.generation) throw new Error('its status is about an older spec')
        if (status?.phase !== phase) throw new Error(`it is ${status?.phase}: ${status?.message}`)
        return status
      }),

    hasReason: (type, name, { condition, reason }) =>
      eventually(`${condition} of ${type.kind} ${name} has the reason ${reason}`, async () => {
        const now = getCondition((await client.get(type, at(name))).status?.conditions, condition)
        if (now?.reason !== reason) throw new Error(`it is ${JSON.stringify(now)}`)
        return now
      }),

    async urlAt(service, port, rest) {
      if (context.namesInUrls) return `http://${service}.${namespace}.svc.cluster.local:${port}${rest}`
      return `http://${context.reach(await client.get(services, at(service)), port)}${rest}`
    },

    async outside(url) {
      const inside = new URL(url ?? 'the status has no url')
      const found = new URL(inside.pathname, inside)
      if (isIP(inside.hostname) === 0) {
        const [service = '', of = ''] = inside.hostname.split('.')
        found.host = context.reach(await client.get(services, { namespace: of, name: service }), Number(inside.port))
      }
      // A pod may be ready a moment before the rules of its Service lead anybody to it.
      await eventually(`${found.host} accepts connections`, () => accepts(found))
      return found.href
    },

    // The kind is part of it: pods of the server have `toolhive-name` too.
    proxyPods: (name) => livePods(`app in (mcpserver,mcpremoteproxy),toolhive-name=${name}`),
    serverPods: (name) => livePods(`app=${name},toolhive-basename=${name}`),

    async runInPod(name, command) {
      await client.create(pods, { metadata: at(name), spec: podOf(context.images.apps, command) })
      const phase = await eventually(`pod ${name} ends`, async () => {
        const { status } = await client.get(pods, at(name))
        return (status?.phase === 'Succeeded' || status?.phase === 'Failed') && status.phase
      })
      const chunks: Uint8Array[] = []
      for await (const chunk of podLogs(client, { namespace, pod: name })) chunks.push(chunk)
      const printed = Buffer.concat(chunks).toString()
      if (phase === 'Failed') throw new Error(`${command.join(' ')} failed in its pod: ${printed}`)
      return printed
    },

    [Symbol.asyncDispose]: () => client.close(),
  }
}

function accepts({ hostname, port, protocol }: URL): Promise<boolean> {
  const socket = connect({ host: hostname, port: Number(port || (protocol === 'https:' ? 443 : 80)), timeout: 5_000 })
  return new Promise<boolean>((resolve, reject) => {
    socket.once('connect', () => resolve(true))
    socket.once('error', reject)
    socket.once('timeout', () => resolve(false))
  }).finally(() => socket.destroy())
}

function pause(ms = INTERVAL_MS): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function podOf(image: string, command: readonly string[]) {
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [{ name: 'main', image, command, securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }],
  }
}
