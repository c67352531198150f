import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { inClusterConnection } from '../config/in-cluster.ts'
import { loadKubeconfig } from '../config/kubeconfig.ts'
import { onlyIfAbsent, onlyIfSame } from '../objects/apply-guards.ts'
import type { ConfigMap } from '../objects/builtin-kinds.ts'
import { configMaps, customResourceDefinitions, deployments, nodes, secrets } from '../objects/resource-types.ts'
import type { ResourceType } from '../objects/types.ts'
import { createKubeClient, type KubeClient, type WatchOptions } from './client.ts'
import { bearerToken, noAuth } from './connection.ts'
import { createDiscovery } from './discovery.ts'
import { isAlreadyExists, isConflict, isExpired, isForbidden, isInvalid, isNotFound, KubeApiError } from './kube-api-error.ts'

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => new Error('did not fail'),
    (error: unknown) => error,
  )

async function watched(client: KubeClient, opts: WatchOptions, enough: (seen: string[]) => boolean): Promise<string[]> {
  const seen: string[] = []
  for await (const { type, object } of client.watch(configMaps, opts)) {
    seen.push(type === 'BOOKMARK' ? type : `${type} ${object.metadata.name}`)
    if (enough(seen)) break
  }
  return seen
}

describeCluster('client on a real API server', () => {
  let client: KubeClient
  let namespace: string
  const warnings: string[] = []
  const named = (name: string, data: Record<string, string> = {}): ConfigMap => ({ metadata: { namespace, name }, data })

  beforeAll(async () => {
    client = createKubeClient(await loadKubeconfig({ path: sharedCluster().kubeconfigPath }), { onWarning: (text) => warnings.push(text) })
    namespace = await testNamespace('client')
  })
  afterAll(() => client?.close())

  it('creates, reads, updates and deletes', async () => {
    const key = { namespace, name: 'crud' }
    expect(await client.tryGet(configMaps, key)).toBeUndefined()
    const created = await client.create(configMaps, named('crud', { a: '1' }))
    expect(created).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } })
    expect(await failure(client.create(configMaps, named('crud')))).toSatisfy(isAlreadyExists)

    const updated = await client.update(configMaps, { ...created, data: { a: '2' } })
    expect(await client.get(configMaps, key)).toEqual(updated)
    expect(await failure(client.update(configMaps, { ...created, data: { a: '3' } }))).toSatisfy(isConflict)

    expect(await client.delete(configMaps, key)).toMatchObject({ kind: 'Status', status: 'Success' })
    const gone = await failure(client.get(configMaps, key))
    expect(gone).toSatisfy(isNotFound)
    expect((gone as Error).message).toBe(`get configmaps ${namespace}/crud: configmaps "crud" not found (404 NotFound)`)
  })

  it('lets the server make up a name', async () => {
    const created = await client.create(configMaps, { metadata: { namespace, name: '', generateName: 'made-' } })
    expect(created.metadata.name).toMatch(/^made-.+/)
  })

  it('names with an escape reach the object they name', async () => {
    const roles: ResourceType = {
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      kind: 'ClusterRole',
      plural: 'clusterroles',
      namespaced: false,
    }
    const name = `${namespace}:escaped`
    await client.create(roles, { metadata: { name } })
    expect((await client.get(roles, { name })).metadata.name).toBe(name)
    await client.delete(roles, { name })
  })

  it('sends all four kinds of patch', async () => {
    const key = { namespace, name: 'patched' }
    const container = (name: string, image: string) => ({ name, image })
    await client.create(deployments, {
      metadata: { ...key },
      spec: {
        selector: { matchLabels: { app: 'x' } },
        template: { metadata: { labels: { app: 'x' } }, spec: { containers: [container('a', 'a:1'), container('b', 'b:1')] } },
      },
    })
    const images = async () => (await client.get(deployments, key)).spec?.template?.spec?.containers.map(({ image }) => image)

    const body = { spec: { template: { spec: { containers: [container('a', 'a:2')] } } } }
    await client.patch(deployments, key, { kind: 'strategic', body })
    expect(await images()).toEqual(['a:2', 'b:1'])
    await client.patch(deployments, key, { kind: 'merge', body })
    expect(await images()).toEqual(['a:2'])
    await client.patch(deployments, key, {
      kind: 'json',
      ops: [
        { op: 'test', path: '/spec/template/spec/containers/0/name', value: 'a' },
        { op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'a:3' },
        { op: 'add', path: '/spec/template/spec/containers/-', value: container('c', 'c:1') },
      ],
    })
    expect(await images()).toEqual(['a:3', 'c:1'])
    const object = { apiVersion: 'apps/v1', kind: 'Deployment', spec: { template: { spec: { containers: [container('d', 'd:1')] } } } }
    await client.patch(deployments, key, { kind: 'apply', object, fieldManager: 'test' })
    expect(await images()).toEqual(['a:3', 'c:1', 'd:1'])

    const failed = { kind: 'json', ops: [{ op: 'test', path: '/metadata/name', value: 'other' }] } as const
    expect(await failure(client.patch(deployments, key, failed))).toMatchObject({ status: 422 })
    expect(await failure(client.patch(deployments, key, { kind: 'merge', body: { spec: { replicas: -1 } } }))).toSatisfy(isInvalid)
  })

  it('apply refuses fields of another manager, naming them, unless forced', async () => {
    await client.apply(configMaps, named('applied', { shared: 'one', mine: '1' }), { fieldManager: 'one' })
    const error = await failure(client.apply(configMaps, named('applied', { shared: 'two' }), { fieldManager: 'two' }))
    expect(error).toSatisfy(isConflict)
    expect((error as KubeApiError).causes).toEqual([
      { reason: 'FieldManagerConflict', field: '.data.shared', message: expect.stringContaining('"one"') },
    ])
    const forced = await client.apply(configMaps, named('applied', { shared: 'two' }), { fieldManager: 'two', force: true })
    expect(forced.data).toEqual({ shared: 'two', mine: '1' })
    const less = await client.apply(configMaps, named('applied', {}), { fieldManager: 'one' })
    expect(less.data).toEqual({ shared: 'two' })
  })

  it('a guarded apply creates what is absent or updates the object given, and touches no other', async () => {
    const apply = (object: ConfigMap) => client.apply(configMaps, object, { fieldManager: 'pinned', force: true })
    const made = await apply(onlyIfAbsent(named('pinned', { a: '1' })))
    expect(made.data).toEqual({ a: '1' })
    expect(await failure(apply(onlyIfAbsent(named('pinned', { b: '2' }))))).toSatisfy(isConflict)
    await client.patch(configMaps, { namespace, name: 'pinned' }, { kind: 'merge', body: { data: { theirs: '1' } } })
    const same = await apply(onlyIfSame(named('pinned', { c: '3' }), made))
    expect([same.metadata.uid, same.data]).toEqual([made.metadata.uid, { c: '3', theirs: '1' }])
    await client.delete(configMaps, { namespace, name: 'pinned' })
    expect(await failure(apply(onlyIfSame(named('pinned', { d: '4' }), made)))).toSatisfy(isConflict)
    const other = await client.create(configMaps, named('pinned', { other: '1' }))
    expect(await failure(apply(onlyIfSame(named('pinned', { d: '4' }), made)))).toBeInstanceOf(KubeApiError)
    expect(await client.get(configMaps, { namespace, name: 'pinned' })).toEqual(other)
  })

  it('a dry run changes nothing', async () => {
    expect((await client.create(configMaps, named('dry', { a: '1' }), { dryRun: true })).metadata.uid).toBeDefined()
    await client.apply(configMaps, named('dry', { a: '1' }), { fieldManager: 'test', dryRun: true })
    expect(await client.tryGet(configMaps, { namespace, name: 'dry' })).toBeUndefined()
    await client.create(configMaps, named('wet'))
    await client.delete(configMaps, { namespace, name: 'wet' }, { dryRun: true })
    expect(await client.tryGet(configMaps, { namespace, name: 'wet' })).toBeDefined()
  })

  it('unknown fields are refused or warned about, as asked', async () => {
    const odd = { ...named('odd'), unknownField: 1 }
    expect(await failure(client.create(configMaps, odd, { fieldValidation: 'Strict' }))).toMatchObject({ status: 400 })
    warnings.length = 0
    await client.create(configMaps, odd, { fieldValidation: 'Warn' })
    expect(warnings).toEqual(['unknown field "unknownField"'])
  })

  it('reads and writes subresources', async () => {
    const key = { namespace, name: 'sub' }
    const spec = {
      replicas: 2,
      selector: { matchLabels: { app: 'x' } },
      template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'a', image: 'a' }] } },
    }
    await client.create(deployments, { metadata: { ...key }, spec })
    const status = { replicas: 2, readyReplicas: 1, observedGeneration: 1 }
    // Without a resourceVersion: the controller of Deployments writes the same status.
    const written = { metadata: { ...key }, spec: { ...spec, replicas: 9 }, status }
    const updated = await client.update(deployments, written, { subresource: 'status' })
    expect(updated).toMatchObject({ spec: { replicas: 2 }, status })
    expect(await client.get(deployments, key, { subresource: 'scale' })).toMatchObject({ kind: 'Scale', spec: { replicas: 2 } })
    await client.patch(deployments, key, { kind: 'merge', body: { spec: { replicas: 5 } } }, { subresource: 'scale' })
    expect((await client.get(deployments, key)).spec?.replicas).toBe(5)
  })

  it('honours preconditions of a delete, and shows what waits for a finalizer', async () => {
    const key = { namespace, name: 'guarded' }
    const created = await client.create(configMaps, { metadata: { ...key, finalizers: ['example.test/hold'] } })
    expect(await failure(client.delete(configMaps, key, { preconditions: { uid: 'another' } }))).toSatisfy(isConflict)
    expect(await failure(client.delete(configMaps, key, { preconditions: { resourceVersion: '1' } }))).toSatisfy(isConflict)
    const uid = created.metadata.uid ?? ''
    const going = await client.delete(configMaps, key, { preconditions: { uid }, propagationPolicy: 'Background' })
    expect(going).toMatchObject({ kind: 'ConfigMap', metadata: { deletionTimestamp: expect.any(String) } })
    await client.patch(configMaps, key, { kind: 'merge', body: { metadata: { finalizers: null } } })
    expect(await client.tryGet(configMaps, key)).toBeUndefined()
  })

  it('deletes a collection by label', async () => {
    for (const name of ['one', 'two']) await client.create(secrets, { metadata: { namespace, name, labels: { batch: 'x' } } })
    await client.create(secrets, { metadata: { namespace, name: 'stays' } })
    await client.deleteCollection(secrets, { namespace, labelSelector: 'batch=x' })
    expect((await client.list(secrets, { namespace })).items.map((item) => item.metadata.name)).toEqual(['stays'])
  })

  it('lists in pages', async () => {
    const crowd = await testNamespace('crowd')
    const names = Array.from({ length: 520 }, (_, i) => `cm-${String(i).padStart(3, '0')}`)
    for (let i = 0; i < names.length; i += 40) {
      const batch = names.slice(i, i + 40)
      await Promise.all(batch.map((name) => client.create(configMaps, { metadata: { namespace: crowd, name } })))
    }
    const sizes: number[] = []
    for await (const page of client.listPages(configMaps, { namespace: crowd })) sizes.push(page.items.length)
    expect(sizes).toEqual([500, 20])
    const all = await client.listAll(configMaps, { namespace: crowd, limit: 100 })
    expect(all.items.map((item) => item.metadata.name)).toEqual(names)
    expect(all.items[0]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' })
    expect(Number(all.metadata.resourceVersion)).toBeGreaterThan(0)
    const first = await client.list(configMaps, { namespace: crowd, limit: 7 })
    expect(first.items).toHaveLength(7)
    expect(first.metadata).toMatchObject({ continue: expect.any(String), remainingItemCount: 513 })
    expect((await client.list(configMaps, { namespace: crowd, fieldSelector: 'metadata.name=cm-007' })).items).toHaveLength(1)
  })

  it('watches from a version on, filtered', async () => {
    const { metadata } = await client.list(configMaps, { namespace })
    const opts = { namespace, resourceVersion: metadata.resourceVersion ?? '', labelSelector: 'watch=yes' }
    const watching = watched(client, opts, (seen) => seen.filter((entry) => entry !== 'BOOKMARK').length === 3)
    const key = { namespace, name: 'watched' }
    await client.create(configMaps, named('unseen'))
    await client.create(configMaps, { metadata: { ...key, labels: { watch: 'yes' } } })
    await client.patch(configMaps, key, { kind: 'merge', body: { data: { text: 'ünï𝄞' } } })
    await client.delete(configMaps, key)
    expect(await watching).toEqual(['ADDED watched', 'MODIFIED watched', 'DELETED watched'])
  })

  it('gets bookmarks, and ends normally when the server has had enough', async () => {
    const { metadata } = await client.create(configMaps, named('bookmarked'))
    await client.patch(configMaps, { namespace, name: 'bookmarked' }, { kind: 'merge', body: { data: { a: 'b' } } })
    const fieldSelector = 'metadata.name=bookmarked'
    const opts = { namespace, fieldSelector, resourceVersion: metadata.resourceVersion ?? '', timeoutSeconds: 5 }
    const without = watched(client, { ...opts, allowBookmarks: false }, () => false)
    const seen: string[] = []
    for await (const { type } of client.watch(configMaps, opts)) {
      seen.push(type)
      // A bookmark comes about two seconds before the end, and only if the kind has changed since the watch began.
      if (type === 'MODIFIED') await client.create(configMaps, named('unseen-too'))
    }
    expect([...new Set(seen)]).toEqual(['MODIFIED', 'BOOKMARK']) // one bookmark or several
    expect(await without).toEqual(['MODIFIED bookmarked'])
  })

  it('knows what the server serves', async () => {
    const discovery = createDiscovery(client, { ttlMs: 60_000 })
    expect((await discovery.serverVersion()).gitVersion).toBe(sharedCluster().version)
    expect(await discovery.preferredVersion('apps')).toBe('v1')
    for (const type of [configMaps, deployments, nodes, customResourceDefinitions]) expect(await discovery.hasResource(type)).toBe(true)

    const group = `${namespace}.example.test`
    const things: ResourceType = { group, version: 'v1', kind: 'Thing', plural: 'things', namespaced: true }
    expect(await discovery.hasResource(things)).toBe(false)
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    await client.create(customResourceDefinitions, {
      metadata: { name: `things.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { kind: 'Thing', plural: 'things' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    })
    expect(await discovery.hasResource(things)).toBe(false) // still from memory
    await expect
      .poll(
        () => {
          discovery.forget()
          return discovery.hasResource(things)
        },
        { timeout: 20_000, interval: 100 },
      )
      .toBe(true)
    const key = { namespace, name: 'first' }
    await expect
      .poll(() => client.create(things, { metadata: { ...key } }).then(() => true, isAlreadyExists), { timeout: 20_000 })
      .toBe(true)
    expect(await client.get(things, key)).toMatchObject({ apiVersion: `${group}/v1`, kind: 'Thing' })
    const refused = await failure(client.patch(things, key, { kind: 'strategic', body: {} }))
    expect(refused).toMatchObject({ status: 415 })
  })

  it('a token that the server does not know is a 401', async () => {
    const { url, caPem } = sharedCluster()
    const stranger = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken('unknown') })
    expect(await failure(stranger.list(configMaps, { namespace }))).toMatchObject({ status: 401, reason: 'Unauthorized' })
    await stranger.close()
  })
})

describeCluster('client on an API server of its own', () => {
  let server: TestServer
  let client: KubeClient
  const namespace = 'default'

  beforeAll(async () => {
    server = await startTestServer({ uncachedResources: ['configmaps'] })
    client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  })
  afterAll(async () => {
    await client?.close()
    await server?.stop()
  })

  itNeeds(['client-certificates'], 'shows a client certificate', async () => {
    const { certPem: cert, keyPem: key } = server.clientCertificate('jane', ['system:masters'])
    const jane = createKubeClient({ server: server.url, tls: { ca: server.caPem, cert, key }, auth: noAuth })
    expect((await jane.list(configMaps)).metadata.resourceVersion).toBeDefined()
    await jane.close()
  })

  itNeeds(['rbac'], 'is refused what its account may not do', async () => {
    const token = await server.serviceAccountToken({ namespace, name: 'powerless' })
    const powerless = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(token) })
    const error = await failure(powerless.list(secrets, { namespace }))
    expect(error).toSatisfy(isForbidden)
    expect((error as Error).message).toContain(`list secrets in ${namespace}: `)
    await powerless.close()
  })

  it('as a pod: reads its token again when the server refuses it', async () => {
    const root = await mkdtemp(join(tmpdir(), 'pod-'))
    const account = join(root, 'var/run/secrets/kubernetes.io/serviceaccount')
    await mkdir(account, { recursive: true })
    await writeFile(join(account, 'ca.crt'), server.caPem)
    await writeFile(join(account, 'token'), 'worn-out')
    const { hostname, port } = new URL(server.url)
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }
    const pod = createKubeClient(await inClusterConnection({ env, root }))
    expect(await failure(pod.list(configMaps))).toMatchObject({ status: 401 })
    await writeFile(join(account, 'token'), server.adminToken)
    expect((await pod.list(configMaps)).metadata.resourceVersion).toBeDefined()
    await pod.close()
    await rm(root, { recursive: true })
  })

  it('after a compaction watch and listPages expire', async () => {
    for (const name of ['a', 'b', 'c']) await client.create(configMaps, { metadata: { namespace, name } })
    const first = await client.list(configMaps, { namespace, limit: 1 })
    const pages = client.listPages(configMaps, { namespace, limit: 1 })
    await pages.next()
    for (const name of ['d', 'e']) await client.create(configMaps, { metadata: { namespace, name } })
    await server.compact()

    expect(await failure(client.list(configMaps, { namespace, continue: first.metadata.continue }))).toSatisfy(isExpired)
    expect(isThvError(await failure(pages.next()), 'kube_watch_expired')).toBe(true)
    const opts = { namespace, resourceVersion: first.metadata.resourceVersion ?? '' }
    expect(isThvError(await failure(watched(client, opts, () => true)), 'kube_watch_expired')).toBe(true)
  })

  it('a server that dies is kube_unreachable to a watch, and back after its restart', async () => {
    const { metadata } = await client.list(configMaps, { namespace })
    const opts = { namespace, resourceVersion: metadata.resourceVersion ?? '' }
    const watching = failure(watched(client, opts, () => false))
    await client.create(configMaps, { metadata: { namespace, name: 'before' } })
    await server.kill()
    expect(isThvError(await watching, 'kube_unreachable')).toBe(true)
    expect(isThvError(await failure(client.create(configMaps, { metadata: { namespace, name: 'during' } })), 'kube_unreachable')).toBe(true)
    await server.restart()
    expect(await client.tryGet(configMaps, { namespace, name: 'before' })).toBeDefined()
  })

  it('a frozen server: calls end by their limit, a silent watch ends normally', async () => {
    const impatient = createKubeClient(
      { server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) },
      { watchBodyTimeoutMs: 2_000 },
    )
    const { metadata } = await impatient.list(configMaps, { namespace })
    const opened = Promise.withResolvers<void>()
    const watching = watched(impatient, { namespace, resourceVersion: metadata.resourceVersion ?? '' }, () => {
      opened.resolve()
      return false
    })
    await impatient.create(configMaps, { metadata: { namespace, name: 'last' } })
    await opened.promise
    server.freeze()
    try {
      const error = await failure(impatient.get(configMaps, { namespace, name: 'last' }, { timeoutMs: 500 }))
      expect(error).toMatchObject({ code: 'kube_unreachable', details: { timeoutMs: 500 } })
      expect(error).not.toBeInstanceOf(KubeApiError)
      expect(await watching).toEqual(['ADDED last'])
    } finally {
      server.unfreeze()
      await impatient.close()
    }
  })
})
