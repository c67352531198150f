import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createSharedCaches } from '@thv/kube/cache/shared-caches'
import { createKubeClient, type KubeClient } from '@thv/kube/client/client'
import { bearerToken } from '@thv/kube/client/connection'
import { createEventRecorder, type EventRecorder } from '@thv/kube/events/events'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { events, pods, serviceAccounts } from '@thv/kube/objects/resource-types'
import { type EmbeddedApiServer, startApiServer } from '../../apiserver/api-server.ts'
import { type LocalNode, type NodeOptions, type NodeTimings, startNode } from '../node.ts'
import { fakeImages } from './fake-images.ts'
import { type FakeNetwork, fakeNetwork } from './fake-network.ts'

export const NAMESPACE = 'default'
export const NODE = 'node-1'

/** No waits; a test of the waiting sets its own. */
export const QUICK: Partial<NodeTimings> = {
  backoffBase: 30,
  backoffMax: 200,
  retry: 50,
  bindCheck: 60_000,
  stopGrace: 2_000,
  drain: 2_000,
}

export interface NodeFixture extends AsyncDisposable {
  readonly server: EmbeddedApiServer
  readonly client: KubeClient
  readonly folder: string
  readonly network: FakeNetwork
  readonly errors: unknown[]
  node: LocalNode
  /** Stops the node and starts it again on the same folder. */
  restart(): Promise<void>
  create(name: string, spec: object, metadata?: object): Promise<Pod>
  get(name: string): Promise<Pod | undefined>
  /** Waits until the pod is as asked. */
  until(name: string, what: (pod: Pod) => boolean): Promise<Pod>
  untilGone(name: string): Promise<void>
  logs(pod: Pod, container?: string, options?: Partial<Parameters<LocalNode['streams']['logs']>[1]>): Promise<string>
  events(name: string): Promise<string[]>
}

export async function startFixture(options: Partial<NodeOptions> = {}): Promise<NodeFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'thv-node-'))
  const errors: unknown[] = []
  const server = await startApiServer({ onError: (error) => errors.push(error) })
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  await client.create(serviceAccounts, { metadata: { name: 'default', namespace: NAMESPACE } })
  const network = fakeNetwork()
  const open: { node: LocalNode; recorder: EventRecorder; close(): Promise<void> }[] = []

  async function begin(): Promise<LocalNode> {
    const caches = createSharedCaches(client, { onError: (error) => errors.push(error) })
    const recording = new AbortController()
    const recorder = createEventRecorder({ client, controller: 'thv.test/node', instance: NODE, signal: recording.signal })
    const node = await startNode({
      client,
      caches,
      events: recorder,
      folder,
      nodeName: NODE,
      images: fakeImages(),
      network,
      podEnv: { KUBERNETES_SERVICE_HOST: '127.0.0.1' },
      timings: QUICK,
      onError: (error) => errors.push(error),
      ...options,
    })
    const close = async () => {
      recording.abort() // else it would go on trying after the server is gone
      await caches.close()
    }
    open.push({ node, recorder, close })
    return node
  }

  async function end(): Promise<void> {
    const last = open.pop()
    await last?.node.stop()
    await last?.close()
  }

  const fixture: NodeFixture = {
    server,
    client,
    folder,
    network,
    errors,
    node: await begin(),
    async restart() {
      await end()
      fixture.node = await begin()
    },
    create: (name, spec, metadata = {}) =>
      client.create(pods, {
        metadata: { name, namespace: NAMESPACE, ...metadata },
        spec: { nodeName: NODE, automountServiceAccountToken: false, terminationGracePeriodSeconds: 5, ...spec } as never,
      }),
    get: (name) => client.tryGet(pods, { namespace: NAMESPACE, name }),
    async until(name, what) {
      let pod: Pod | undefined
      const met = await eventually(async () => {
        pod = await fixture.get(name)
        return pod !== undefined && what(pod)
      })
      if (met && pod !== undefined) return pod
      throw new Error(
        `the pod ${name} did not become as asked: ${JSON.stringify(pod?.status, null, 1)} ${(await fixture.events(name)).join('\n')}`,
      )
    },
    async untilGone(name) {
      if (!(await eventually(async () => (await fixture.get(name)) === undefined))) throw new Error(`the pod ${name} is still there`)
    },
    async logs(pod, container = 'main', more = {}) {
      const target = { namespace: NAMESPACE, pod: pod.metadata.name, uid: pod.metadata.uid ?? '', container }
      const all = await fixture.node.streams.logs(target, {
        follow: false,
        previous: false,
        timestamps: false,
        signal: new AbortController().signal,
        ...more,
      })
      const chunks: Uint8Array[] = []
      for await (const chunk of all) chunks.push(chunk)
      return Buffer.concat(chunks).toString('utf8')
    },
    async events(name) {
      await open.at(-1)?.recorder.flush(AbortSignal.timeout(5_000))
      const list = await client.list(events, { namespace: NAMESPACE })
      return list.items.filter(({ regarding }) => regarding?.name === name).map(({ reason, note }) => `${reason}: ${note}`)
    },
    async [Symbol.asyncDispose]() {
      await end()
      await client.close()
      await server.close()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    },
  }
  return fixture
}

/** One container `main` that runs this script. */
export function script(image: 'node' | 'sh', text: string, more: object = {}): { containers: object[] } {
  return { containers: [{ name: 'main', image, args: [text], ...more }] }
}

const PATIENCE_MS = 60_000

export async function eventually(holds: () => boolean | Promise<boolean>, patienceMs = PATIENCE_MS): Promise<boolean> {
  for (const end = Date.now() + patienceMs; Date.now() < end; await delay(20)) if (await holds()) return true
  return await holds()
}

export function condition(pod: Pod, type: string): string | undefined {
  return pod.status?.conditions?.find((one) => one.type === type)?.status
}

export const isReady = (pod: Pod) => condition(pod, 'Ready') === 'True'
