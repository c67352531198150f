import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ConfigMap, configMaps, type ResourceType } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { type GitServer, startGitServer } from '@thv/testkit/git/git-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'

const type = mcpRegistryType as unknown as ResourceType<MCPRegistry>
const TRIGGER = 'toolhive.stacklok.dev/sync-trigger'
const FLAGS = { allowLoopbackRemotes: true }

const file = (tag: string) => JSON.stringify({ servers: { fetch: { image: `example.com/fetch:${tag}`, tags: ['web'] } } })

describeCluster('an MCPRegistry that the operator syncs', () => {
  let operator: OperatorUnderTest
  let git: GitServer

  beforeAll(async () => {
    git = await startGitServer()
    operator = await startOperator({ flags: FLAGS })
  })
  afterAll(async () => {
    await operator?.stop()
    await git?.[Symbol.asyncDispose]()
  })

  const key = (name: string) => ({ namespace: operator.namespace, name })
  const create = (name: string, spec: object) => operator.admin.create(type, { metadata: key(name), spec } as MCPRegistry)
  /** A second try finds what the first one made, so each has names of its own. */
  const own = (name: string) => `${name}-${randomBytes(3).toString('hex')}`
  const ofGit = (name: string, more: object) => ({ source: { type: 'git', git: { repository: `${git.url}/${name}`, ...more } } })
  const annotate = (name: string, annotations: Record<string, string>) =>
    operator.admin.patch(type, key(name), { kind: 'merge', body: { metadata: { annotations } } })
  const storage = (name: string) => operator.admin.get(configMaps, key(`${name}-registry-storage`))
  const stored = (name: string, tag: string) =>
    eventually(`the storage of ${name} has ${tag}`, async () => {
      const map = await storage(name)
      const text = map.data?.['registry.json'] ?? ''
      if (!text.includes(`fetch:${tag}"`)) throw new Error(text)
      return map
    })
  const reaches = (name: string, check: (status: NonNullable<MCPRegistry['status']>) => unknown) =>
    eventually(`the status of ${name}`, async () => {
      const { status } = await operator.admin.get(type, key(name))
      if (status === undefined || !check(status)) throw new Error(JSON.stringify(status))
      return status
    })
  /** Syncs of a repository begin with this question. */
  const fetches = (name: string) => git.requests.filter(({ url }) => url.startsWith(`/${name}/info/refs`)).length

  test('[002-252] [002-254] [002-256] reads a branch, a tag and a commit, at any path, and stores what a ConfigMap with the same text gives', async () => {
    const [refs, byBranch, byTag, byCommit, byMap, same] = [own('refs'), own('branch'), own('tag'), own('commit'), own('map'), own('same')]
    const repository = await git.repository(refs)
    const first = await repository.commit({ 'registry.json': file('1'), 'teams/a.json': file('a') })
    await repository.git('tag', 'v1')
    await repository.commit({ 'registry.json': file('2'), 'teams/a.json': file('b') })
    await create(byBranch, ofGit(refs, { branch: 'main' }))
    await create(byTag, ofGit(refs, { tag: 'v1' }))
    await create(byCommit, ofGit(refs, { commit: first, path: 'teams/a.json' }))
    const ofBranch = await stored(byBranch, '2')
    await stored(byTag, '1')
    await stored(byCommit, 'a')
    await operator.admin.create(configMaps, { metadata: key(same), data: { 'registry.json': file('2') } } as ConfigMap)
    await create(byMap, { source: { configMap: { name: same } } })
    expect((await stored(byMap, '2')).data).toEqual(ofBranch.data)
  })

  test('[002-251] chooses the handler by the type of the source: another registry is asked page by page, an unknown type is refused', async () => {
    const name = own('by-api')
    const paths: string[] = []
    const other = createServer((request, response) => {
      paths.push(request.url ?? '')
      const packages = [{ registryType: 'oci', identifier: 'example.com/fetch:api', transport: { type: 'stdio' } }]
      const server = { name: 'com.example/fetch', description: 'Fetches', version: '1.0.0', packages }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ servers: [{ server, _meta: {} }], metadata: { count: 1 } }))
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    try {
      const endpoint = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
      await create(name, { source: { type: 'api', api: { endpoint } } })
      const map = await stored(name, 'api')
      expect(paths.some((path) => path.includes('/v0.1/servers'))).toBe(true)
      expect(map.metadata.annotations?.['toolhive.stacklok.dev/registry-format']).toBe('upstream')
      await expect(create('by-ftp', { source: { type: 'ftp', configMap: { name: 'x' } } })).rejects.toThrow(/spec\.source\.type/)
    } finally {
      other.closeAllConnections()
      other.close()
    }
  })

  test('[002-255] [002-257] keeps the data when the branch is gone, and writes nothing when they are the same', async () => {
    const gone = own('gone')
    const repository = await git.repository(gone)
    await repository.commit({ 'registry.json': file('1') })
    await create(gone, ofGit(gone, { branch: 'main' }))
    const before = await stored(gone, '1')
    await repository.commit({ 'registry.json': file('1'), 'README.md': 'another commit, the same data' })
    await annotate(gone, { [TRIGGER]: 'same' })
    await reaches(gone, ({ lastManualSyncTrigger, syncStatus }) => lastManualSyncTrigger === 'same' && syncStatus?.phase === 'Complete')
    expect((await storage(gone)).metadata.resourceVersion).toBe(before.metadata.resourceVersion)
    await repository.git('update-ref', '-d', 'refs/heads/main')
    await annotate(gone, { [TRIGGER]: 'lost' })
    const { conditions } = await reaches(gone, ({ syncStatus }) => syncStatus?.phase === 'Failed')
    expect(conditions?.find((condition) => condition.type === 'SyncSuccessful')).toMatchObject({ status: 'False', reason: 'FetchFailed' })
    expect((await storage(gone)).data).toEqual(before.data)
  })

  test('[003-010] fetches nothing itself for entries of registries[]', async () => {
    const mixed = own('mixed')
    await (await git.repository(mixed)).commit({ 'registry.json': file('1') })
    await create(mixed, { registries: [{ name: 'community', git: { repository: `${git.url}/${mixed}`, branch: 'main' } }] })
    await annotate(mixed, { [TRIGGER]: 'now' })
    const config = await eventually('the configuration of the server', async () => {
      const map = await operator.admin.get(configMaps, key(`${mixed}-registry-server-config`))
      return map.data?.['config.yaml']?.includes('syncRequest') && map.data['config.yaml']
    })
    expect(config).toContain(`${git.url}/${mixed}`)
    await reaches(mixed, ({ observedGeneration }) => observedGeneration !== undefined)
    expect(fetches(mixed)).toBe(0)
  })

  test('puts right a storage ConfigMap that was edited or deleted', async () => {
    const kept = own('kept')
    await operator.admin.create(configMaps, { metadata: key(kept), data: { 'registry.json': file('1') } } as ConfigMap)
    await create(kept, { source: { configMap: { name: kept } } })
    const before = await stored(kept, '1')
    const data = { 'registry.json': '{}', extra: 'theirs' }
    await operator.admin.patch(configMaps, key(`${kept}-registry-storage`), { kind: 'merge', body: { data } })
    expect((await stored(kept, '1')).data).toEqual(before.data)
    await operator.admin.delete(configMaps, key(`${kept}-registry-storage`))
    expect((await stored(kept, '1')).data).toEqual(before.data)
  })

  test('[002-265] [002-274] syncs once for each value of the trigger, also across a restart of the operator, which keeps the data', async () => {
    const [once, marker] = [own('once'), own('marker')]
    const repository = await git.repository(once)
    await repository.commit({ 'registry.json': file('1') })
    await create(once, ofGit(once, { branch: 'main' }))
    const done = (value: string) => reaches(once, ({ lastManualSyncTrigger }) => lastManualSyncTrigger === value)
    await (await git.repository(marker)).commit({ 'registry.json': file('1') })
    await create(marker, ofGit(marker, { branch: 'main' }))
    await stored(once, '1')
    await stored(marker, '1')
    await annotate(once, { [TRIGGER]: '1' })
    await done('1')
    await reaches(once, ({ syncStatus }) => syncStatus?.phase === 'Complete')
    const after = fetches(once)
    const before = await storage(once)

    await operator.stop()
    await repository.commit({ 'registry.json': file('2') })
    operator = await startOperator({ flags: FLAGS, namespace: operator.namespace })
    await eventually('the new operator reconciles it', async () => operator.reconciled.includes(`mcpregistry ${once}`))
    await annotate(once, { [TRIGGER]: '1', touched: 'yes' })
    await annotate(once, { [TRIGGER]: '' })
    await annotate(once, { [TRIGGER]: '1' })
    await annotate(marker, { [TRIGGER]: 'marker' })
    await reaches(marker, ({ lastManualSyncTrigger }) => lastManualSyncTrigger === 'marker')
    expect(fetches(once)).toBe(after)
    expect((await storage(once)).metadata).toMatchObject({ uid: before.metadata.uid, resourceVersion: before.metadata.resourceVersion })

    await annotate(once, { [TRIGGER]: '2' })
    await done('2')
    await stored(once, '2')
    expect(fetches(once)).toBe(after + 1)
  })
})
