import { readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import {
  type KubeClient,
  type KubeObject,
  type Pod,
  pods,
  type ResourceType,
  type Service,
  type StatefulSet,
  services,
  statefulSets,
} from '@thv/kube'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Runtime, ServerHandle, StdioEnd } from '../runtime.ts'
import { readyPod } from '../testing/pods.ts'
import { adminClient, runnerClient } from '../testing/runner-role.ts'
import { configOf, eventually, type MemoryLog, memoryLog } from '../testing/runtime-fixtures.ts'
import type { AttachPort, AttachTarget } from './attach-port.ts'
import { desiredObjects } from './desired-objects.ts'
import { createKubernetesRuntime } from './kubernetes-runtime.ts'
import { FIELD_MANAGER } from './workload-apply.ts'

const EXAMPLE = JSON.parse(
  readFileSync(new URL('../../../../../deploy/examples/runconfig/kubernetes-streamable-http.json', import.meta.url), 'utf8'),
) as Record<string, unknown>
const OWNER = { api_version: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', name: 'demo', uid: '5f0c2f7e-6c1e-4b1d-9d5c-3f3a1f0c9a11' }
const HTTP = { transport: 'streamable-http', target_port: 9000, owner: OWNER }
const RESTARTED = 'kubectl.kubernetes.io/restartedAt'

describeCluster('the Kubernetes runtime on the API server, with the rights of a runner', () => {
  /** Of our own and without controllers: these tests write themselves what the controller of StatefulSets would. */
  let cluster: TestServer
  let admin: KubeClient
  let namespace: string
  let log: MemoryLog
  const opened: { runtime: Runtime; client: KubeClient; stop: AbortController }[] = []

  beforeAll(async () => {
    cluster = await startTestServer()
    admin = adminClient(cluster)
  })
  afterAll(async () => {
    await admin?.close()
    await cluster?.stop()
  })
  afterEach(async () => {
    await closeAll()
    expect(log.lines.filter(({ fields }) => String(fields['error']).includes('Forbidden'))).toEqual([])
  })

  async function closeAll(): Promise<void> {
    for (const { runtime, client, stop } of opened.splice(0)) {
      stop.abort()
      await runtime.close()
      await client.close()
    }
  }

  async function start(document: Record<string, unknown>, attach?: AttachPort) {
    const config = configOf(document)
    const client = await runnerClient(admin, { namespace, name: config.container_name, cluster })
    const counts = { applies: 0 }
    const counting: KubeClient = {
      ...client,
      apply: (type, object, opts) => {
        counts.applies++
        return client.apply(type, object, opts)
      },
    }
    const stop = new AbortController()
    const runtime = createKubernetesRuntime({
      config,
      client: counting,
      namespace,
      log,
      recreateDelayMs: 100,
      watchBackoff: { baseMs: 50, maxMs: 500 },
      attachBackoff: { baseMs: 10, maxMs: 50 },
      ...(attach && { attach }),
    })
    opened.push({ runtime, client, stop })
    return { runtime, counts, handle: () => runtime.startServer(stop.signal) }
  }

  const fresh = async (prefix: string) => {
    namespace = await testNamespace(prefix, cluster)
    log = memoryLog()
  }
  const get = <T extends KubeObject>(type: ResourceType<T>, name: string) => admin.tryGet(type, { namespace, name })
  const set = () => get(statefulSets, 'demo')
  const imageOf = (live: StatefulSet | undefined) => live?.spec?.template?.spec?.containers.find(({ name }) => name === 'mcp')?.image
  const appears = (name = 'demo') => eventually(`StatefulSet ${name} exists`, async () => (await get(statefulSets, name)) !== undefined)

  /** Long enough for an event to arrive and to be acted upon. */
  const quiet = () => new Promise((resolve) => setTimeout(resolve, 700))

  async function setStatus(more: Record<string, number>): Promise<void> {
    const generation = (await set())?.metadata.generation ?? 0
    const status = { observedGeneration: generation, replicas: 1, ...more }
    await admin.patch(statefulSets, { namespace, name: 'demo' }, { kind: 'merge', body: { status } }, { subresource: 'status' })
  }

  test('the example becomes exactly these objects [002-206] [002-222]', async () => {
    await fresh('example')
    const { handle } = await start(EXAMPLE)
    const server = await handle()
    expect(server.url.href).toBe('http://mcp-weather:9000/')
    await appears('weather')
    const [sets, all] = await Promise.all([admin.list(statefulSets, { namespace }), admin.list(services, { namespace })])
    expect(all.items.map(({ metadata }) => metadata.name).sort()).toEqual(['mcp-weather', 'mcp-weather-headless'])
    const stored = { statefulSets: sets.items.map(withoutServerFields), services: all.items.map(withoutServerFields) }
    await expect(`${JSON.stringify(stored, inOrder, 2)}\n`).toMatchFileSnapshot(
      fileURLToPath(new URL('./stored-example.golden.json', import.meta.url)),
    )
  })

  test('a stdio server has a headless Service without ports, and no other', async () => {
    await fresh('stdio')
    const { runtime } = await start({ owner: OWNER }, { attach: () => Promise.reject(new Error('no pod here')) })
    const waiting = runtime.openStdio(new AbortController().signal)
    waiting.catch(() => undefined)
    await appears()
    const all = await admin.list(services, { namespace })
    expect(all.items.map(({ metadata, spec }) => [metadata.name, spec?.clusterIP, spec?.ports])).toEqual([
      ['mcp-demo-headless', 'None', undefined],
    ])
    await closeAll()
    await expect(waiting).rejects.toThrow('closed')
  })

  describe('repairs', () => {
    test('reverts changes of others and keeps their additions [002-219]', async () => {
      await fresh('repair')
      const { handle } = await start(HTTP)
      await handle()
      await appears()
      const before = await set()
      const key = { namespace, name: 'demo' }
      const template = {
        metadata: { annotations: { [RESTARTED]: '2026-01-01T00:00:00Z' } },
        spec: { containers: [{ name: 'mcp', image: 'evil:1', env: [{ name: 'EXTRA', value: 'kept' }] }] },
      }
      await admin.patch(statefulSets, key, { kind: 'strategic', body: { spec: { replicas: 3, template } } }, { fieldManager: 'kubectl' })
      await eventually('the image is back', async () => imageOf(await set()) === imageOf(before))
      // One after the other: the change of one object must not be what gets the other one repaired.
      await admin.patch(services, { namespace, name: 'mcp-demo' }, { kind: 'merge', body: { spec: { selector: { app: 'evil' } } } })
      await eventually('the selector is back', async () => (await get(services, 'mcp-demo'))?.spec?.selector?.['app'] === 'demo')
      const ports = [{ name: 'evil', port: 1 }]
      await admin.patch(services, { namespace, name: 'mcp-demo-headless' }, { kind: 'merge', body: { spec: { ports } } })
      await eventually(
        'the port is back',
        async () => (await get(services, 'mcp-demo-headless'))?.spec?.ports?.some(({ port }) => port === 9000) === true,
      )

      const after = await set()
      expect(after?.metadata.uid).toBe(before?.metadata.uid)
      expect(after?.spec?.template?.metadata?.annotations?.[RESTARTED]).toBe('2026-01-01T00:00:00Z')
      expect(after?.spec?.replicas).toBe(3)
    })

    test('nothing when there is nothing to repair', async () => {
      await fresh('quiet')
      const { handle, counts } = await start(HTTP)
      const server = await handle()
      await appears()
      await setStatus({ readyReplicas: 1, updatedReplicas: 1 })
      await eventually('it is ready', () => server.state.ready)
      await eventually('all is applied', async () => {
        const before = counts.applies
        await quiet()
        return before >= 3 && counts.applies === before
      })
      const settled = counts.applies
      for (const readyReplicas of [0, 1, 0, 1]) {
        await setStatus({ readyReplicas, updatedReplicas: 1 })
        await eventually('that is seen', () => server.state.ready === readyReplicas > 0)
      }
      await quiet()
      expect(counts.applies).toBe(settled)
    })

    test('creates again what others delete [002-219]', async () => {
      await fresh('recreate')
      const { handle } = await start(HTTP)
      await handle()
      await appears()
      const before = await set()
      await admin.delete(statefulSets, { namespace, name: 'demo' })
      await eventually('the StatefulSet is another one', async () => {
        const uid = (await set())?.metadata.uid
        return uid !== undefined && uid !== before?.metadata.uid
      })
      await admin.delete(services, { namespace, name: 'mcp-demo-headless' })
      await eventually('the Service is there', async () => (await get(services, 'mcp-demo-headless')) !== undefined)
      expect(log.text()).toContain('StatefulSet demo is gone and is made again')
    })
  })

  describe('the generation guard', () => {
    const at = (generation: number, image: string) => ({ ...HTTP, image, mcpserver_generation: generation })

    test('keeps an older runner from turning anything back, and lets a newer one go on', async () => {
      await fresh('guard')
      const newer = await start(at(9, 'new:9'))
      await newer.handle()
      await appears()
      const older = await start(at(8, 'old:8'))
      const handle = await older.handle()
      await eventually('it sees that it is too late', () => handle.state.message.startsWith('a runner with a newer config has taken over'))
      // Neither does it repair; here the newer one does.
      await admin.patch(
        statefulSets,
        { namespace, name: 'demo' },
        { kind: 'merge', body: { metadata: { labels: { toolhive: 'edited' } } } },
      )
      await eventually('the newer one has repaired it', async () => (await set())?.metadata.labels?.['toolhive'] === 'true')
      expect(imageOf(await set())).toBe('new:9')
      expect(older.counts.applies).toBe(0)

      const newest = await start(at(10, 'newest:10'))
      await newest.handle()
      await eventually('the newest has taken over', async () => imageOf(await set()) === 'newest:10')
      await quiet()
      expect(imageOf(await set())).toBe('newest:10')
    })

    test('is no objection where the number is missing', async () => {
      await fresh('guard')
      const { statefulSet } = desiredObjects(configOf({ ...HTTP, image: 'unnumbered:1' }), { namespace })
      const { uid } = (await admin.create(statefulSets, statefulSet)).metadata
      const { handle } = await start(at(1, 'numbered:1'))
      await handle()
      await eventually('it has been applied', async () => imageOf(await set()) === 'numbered:1')
      expect((await set())?.metadata.uid).toBe(uid)
    })
  })

  describe('owners', () => {
    test('an object of somebody else is left alone, and the state says so', async () => {
      await fresh('foreign')
      const other = { ...OWNER, name: 'other', uid: '11111111-6c1e-4b1d-9d5c-3f3a1f0c9a11' }
      const { statefulSet } = desiredObjects(configOf({ ...HTTP, owner: other, image: 'theirs:1' }), { namespace })
      await admin.create(statefulSets, statefulSet)
      const { handle } = await start({ ...HTTP, image: 'ours:1' })
      const server: ServerHandle = await handle()
      await eventually('it is said', () => server.state.message.includes('StatefulSet demo already, which belongs to MCPServer other'))
      expect(imageOf(await set())).toBe('theirs:1')
      await admin.delete(statefulSets, { namespace, name: 'demo' })
      await eventually('once it is gone ours comes', async () => imageOf(await set()) === 'ours:1')
    })

    /** An object made by hand, with labels and ports of its own. */
    const byHand = (name: string) => ({ metadata: { namespace, name, labels: { app: 'theirs' } } })
    const theirSet = (): StatefulSet => ({
      ...byHand('demo'),
      spec: {
        serviceName: 'theirs',
        selector: { matchLabels: { app: 'theirs' } },
        template: { metadata: { labels: { app: 'theirs' } }, spec: { containers: [{ name: 'db', image: 'theirs:1' }] } },
      },
    })
    const theirService = (name: string): Service => ({ ...byHand(name), spec: { ports: [{ name: 'theirs', port: 5432 }] } })

    test.each([
      ['StatefulSet', 'demo', statefulSets, theirSet],
      ['Service', 'mcp-demo', services, () => theirService('mcp-demo')],
      ['Service', 'mcp-demo-headless', services, () => theirService('mcp-demo-headless')],
    ] as const)(
      'a %s %s that somebody made by hand stays as it is, and the server starts once it is gone',
      async (kind, name, type, make) => {
        await fresh('by-hand')
        const theirs: KubeObject = await admin.create(type as ResourceType, make())
        const { handle, counts } = await start(HTTP)
        const server = await handle()
        await eventually('it is said', () => server.state.message.includes(`There is a ${kind} ${name} already`))
        await quiet()
        expect(await get(type as ResourceType, name)).toEqual(theirs)
        expect(counts.applies).toBe(0)
        expect(server.state.ready).toBe(false)
        await admin.delete(type as ResourceType, { namespace, name })
        await eventually(
          'once it is gone ours comes',
          async () => imageOf(await set()) !== undefined && imageOf(await set()) !== 'theirs:1',
        )
        expect((await get(type as ResourceType, name))?.metadata.uid).not.toBe(theirs.metadata.uid)
        await closeAll()
      },
    )

    test('a foreign Service is not removed when the server speaks stdio', async () => {
      await fresh('by-hand')
      const theirs = await admin.create(services, theirService('mcp-demo'))
      const { runtime } = await start({ owner: OWNER }, { attach: () => Promise.reject(new Error('no pod here')) })
      runtime.openStdio(new AbortController().signal).catch(() => undefined)
      await appears()
      await quiet()
      expect(await get(services, 'mcp-demo')).toEqual(theirs)
    })

    test('an object without owner that a runner of this server made is taken over', async () => {
      await fresh('adopt')
      const { owner: _, ...unowned } = HTTP
      const objects = desiredObjects(configOf(unowned), { namespace })
      const asRunner = { fieldManager: FIELD_MANAGER }
      await admin.apply(statefulSets, objects.statefulSet, asRunner)
      for (const service of objects.services) await admin.apply(services, service, asRunner)
      const before = await set()
      const { handle } = await start(HTTP)
      await handle()
      await eventually('it has our owner', async () => (await set())?.metadata.ownerReferences?.[0]?.uid === OWNER.uid)
      const after = await set()
      expect(after?.metadata.uid).toBe(before?.metadata.uid)
      expect(after?.metadata.ownerReferences).toEqual([
        { apiVersion: OWNER.api_version, kind: 'MCPServer', name: 'demo', uid: OWNER.uid, controller: true, blockOwnerDeletion: false },
      ])
      expect((await get(services, 'mcp-demo'))?.metadata.ownerReferences).toHaveLength(1)
    })

    test('a StatefulSet whose selector or Service name cannot be changed is created again', async () => {
      await fresh('replace')
      const { statefulSet } = desiredObjects(configOf(HTTP), { namespace })
      const spec = { ...statefulSet.spec, serviceName: 'demo', selector: { matchLabels: { app: 'demo' } } }
      const created = await admin.create(statefulSets, { ...statefulSet, spec })
      const { handle } = await start(HTTP)
      await handle()
      await eventually('the new one is there', async () => (await set())?.spec?.serviceName === 'mcp-demo-headless')
      expect((await set())?.metadata.uid).not.toBe(created.metadata.uid)
    })

    test('the Service of a server that now speaks stdio is removed', async () => {
      await fresh('unused')
      const http = await start(HTTP)
      await http.handle()
      await appears()
      await closeAll()
      expect(await get(services, 'mcp-demo')).toBeDefined() // closing a runner leaves the workload
      const { runtime } = await start({ owner: OWNER }, { attach: () => Promise.reject(new Error('no pod here')) })
      runtime.openStdio(new AbortController().signal).catch(() => undefined)
      await eventually('it is gone', async () => (await get(services, 'mcp-demo')) === undefined)
      expect(await get(services, 'mcp-demo-headless')).toBeDefined()
    })
  })

  test('is ready when the status of the StatefulSet says so, and waits without a limit', async () => {
    await fresh('ready')
    const { handle } = await start(HTTP)
    const server = await handle()
    await appears()
    await eventually('it waits', () => server.state.message.includes('has not been taken up yet'))
    await setStatus({ readyReplicas: 0, updatedReplicas: 1 })
    await eventually('it counts', () => server.state.message.startsWith('0 of 1 pods ready'))
    const pod = await createPod('demo-0', { ready: false })
    await eventually('the pod is named', () => server.state.message.includes('pod demo-0: ImagePullBackOff: no such image'))
    await admin.patch(
      pods,
      { namespace, name: 'demo-0' },
      { kind: 'merge', body: { status: readyPod('demo-0').status } },
      { subresource: 'status' },
    )
    await setStatus({ readyReplicas: 1, updatedReplicas: 1 })
    await eventually('it is ready', () => server.state.ready)
    await eventually('one start was counted', () => server.state.generation === 1)
    await setStatus({ readyReplicas: 0, updatedReplicas: 1 })
    await eventually('it is not ready', () => !server.state.ready)
    expect(pod.metadata.uid).toBeDefined()
  })

  test('attaches to the pod that is ready, and to the next one when it is replaced', async () => {
    await fresh('attach')
    const targets: AttachTarget[] = []
    const attach: AttachPort = {
      attach: async (target) => {
        targets.push(target)
        const ended = Promise.withResolvers<StdioEnd>()
        const close = async () => ended.resolve({ message: 'closed' })
        return { stdin: new PassThrough(), stdout: new PassThrough(), ended: ended.promise, close }
      },
    }
    const { runtime } = await start({ owner: OWNER }, attach)
    const opening = runtime.openStdio(new AbortController().signal)
    await appears()
    await createPod('demo-1', { ready: true }) // scaled up by hand: the Role does not name it
    await createPod('demo-0', { ready: true })
    const first = await opening
    expect(targets).toEqual([{ namespace, pod: 'demo-0', container: 'mcp' }])

    const next = first.ended.then(() => runtime.openStdio(new AbortController().signal))
    await admin.delete(pods, { namespace, name: 'demo-0' }, { gracePeriodSeconds: 0 })
    expect(await first.ended).toEqual({ message: 'pod demo-0 is gone' })
    await createPod('demo-0', { ready: true })
    expect((await next).instance).not.toBe(first.instance)
    expect(targets).toHaveLength(2)
  })

  test('its pods meet the restricted Pod Security Standard, and every patch of the golden files is valid', async () => {
    await fresh('restricted')
    const label = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await admin.raw('PATCH', `/api/v1/namespaces/${namespace}`, {
      body: { metadata: { labels: label } },
      contentType: 'application/merge-patch+json',
    })
    for (const platform of ['kubernetes', 'openshift'] as const) {
      const { statefulSet } = desiredObjects(configOf(HTTP), { namespace, platform })
      const template = statefulSet.spec?.template
      const pod: Pod = {
        metadata: { namespace, name: `${platform}-0`, labels: template?.metadata?.labels ?? {} },
        ...(template?.spec && { spec: template.spec }),
      }
      expect((await admin.create(pods, pod, { dryRun: true })).metadata.name).toBe(pod.metadata.name)
    }
    for (const name of ['stdio-minimal', 'streamable-http', 'sse-replicas', 'pod-patch', 'openshift']) {
      const text = readFileSync(new URL(`./desired-${name}.golden.json`, import.meta.url), 'utf8').replaceAll(
        '"team-a"',
        JSON.stringify(namespace),
      )
      const { statefulSet, services: all } = JSON.parse(text) as { statefulSet: StatefulSet; services: Service[] }
      const options = { fieldManager: 'test', dryRun: true, fieldValidation: 'Strict' } as const
      expect((await admin.apply(statefulSets, statefulSet, options)).spec?.template).toMatchObject({
        metadata: statefulSet.spec?.template?.metadata,
      })
      for (const service of all) expect((await admin.apply(services, service, options)).metadata.name).toBe(service.metadata.name)
    }
  })

  async function createPod(name: string, { ready }: { ready: boolean }): Promise<Pod> {
    const labels = { app: 'demo', 'toolhive-basename': 'demo' }
    const pod = await admin.create<Pod>(pods, {
      metadata: { namespace, name, labels },
      spec: { containers: [{ name: 'mcp', image: 'x:1' }] },
    })
    const waiting = {
      containerStatuses: [
        {
          name: 'mcp',
          restartCount: 0,
          ready: false,
          image: 'x:1',
          imageID: '',
          state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
        },
      ],
    }
    const status = ready ? readyPod(name).status : waiting
    await admin.patch(pods, { namespace, name }, { kind: 'merge', body: { status } }, { subresource: 'status' })
    return pod
  }
})

/** Without what differs from run to run. */
/** For JSON.stringify: members in order of their names, as servers differ in theirs. */
function inOrder(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function withoutServerFields(object: KubeObject): unknown {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: unknown }
  const { name, labels, annotations, ownerReferences } = metadata
  const spec = (rest as { spec?: Record<string, unknown> }).spec ?? {}
  const { clusterIP, clusterIPs, ...kept } = spec
  const isHeadless = clusterIP === 'None'
  return { ...rest, metadata: { name, labels, annotations, ownerReferences }, spec: isHeadless ? { ...kept, clusterIP } : kept }
}
