import { randomBytes } from 'node:crypto'
import {
  type ConfigMap,
  configMaps,
  deployments,
  events,
  isNotFound,
  type KubeObject,
  namespaces,
  type ResourceType,
  roleBindings,
  services,
} from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { failureLimit } from '../../testing/failure-limit.ts'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { standstill } from '../../testing/standstill.ts'
import { disruptionBudgets } from './objects/disruption-budget.ts'

const type = mcpRegistryType as unknown as ResourceType<MCPRegistry>

describeCluster('an MCPRegistry', () => {
  let operator: OperatorUnderTest
  /** Watched too, and deleted by the last test. */
  let doomed: string

  beforeAll(async () => {
    const [namespace, other] = [await testNamespace('operator'), await testNamespace('doomed')]
    doomed = other
    operator = await startOperator({ namespace, env: { WATCH_NAMESPACE: `${namespace},${doomed}` } })
  })
  afterAll(async () => await operator?.stop())

  const key = (name: string) => ({ namespace: operator.namespace, name })
  /** A second try finds what the first one made. */
  const create = async (name: string, spec: MCPRegistry['spec'], annotations: Record<string, string> = {}) =>
    (await operator.admin.tryGet(type, key(name))) ??
    (await operator.admin.create(type, { metadata: { ...key(name), annotations }, spec } as MCPRegistry))
  const dataMap = async (name: string, labels: Record<string, string>, servers: unknown, file = 'registry.json') =>
    (await operator.admin.tryGet(configMaps, key(name))) ??
    (await operator.admin.create(configMaps, {
      metadata: { ...key(name), labels },
      data: { [file]: typeof servers === 'string' ? servers : JSON.stringify({ servers }) },
    } as ConfigMap))
  const condition = ({ status }: MCPRegistry, name: string) => status?.conditions?.find((each) => each.type === name)

  /** The registry when its status is about its newest spec and `check` holds. */
  const registry = (name: string, check: (registry: MCPRegistry) => unknown = () => true) =>
    eventually(`the status of ${name}`, async () => {
      const found = await operator.admin.get(type, key(name))
      if (found.status?.observedGeneration !== found.metadata.generation || !check(found)) throw new Error(JSON.stringify(found.status))
      return found
    })

  const serversIn = ({ data }: ConfigMap): Record<string, object> => {
    const { servers = {}, remote_servers = {} } = JSON.parse(data?.['registry.json'] ?? '{}')
    return { ...servers, ...remote_servers }
  }
  /** A ConfigMap that the operator writes, when it has these servers: in the same reading, as another write may still be under way. */
  const mapWith = (map: string, names: readonly string[]) =>
    eventually(`the servers ${names.join(', ')} in ${map}`, async () => {
      const read = await operator.admin.get(configMaps, key(map))
      const found = Object.keys(serversIn(read)).sort()
      if (JSON.stringify(found) !== JSON.stringify([...names].sort())) throw new Error(found.join())
      return read
    })
  const served = async (map: string, names: readonly string[]): Promise<Record<string, object>> => serversIn(await mapWith(map, names))

  const image = (tag: string) => ({ image: `example.com/server:${tag}` })
  const LABEL = 'toolhive.stacklok.dev/registry'

  test('[003-001] [003-002] [003-012] [003-038] [003-039] [003-040] [003-041] [003-057] [003-104] [003-105] [003-106] follows ConfigMaps that join, change, lose their label and go', async () => {
    const selector = { matchLabels: { [LABEL]: 'joins' } }
    await create('joins', { registries: [{ name: 'teams', configMapSelector: selector }] })
    await served('joins-teams-aggregated', [])
    const deployment = await eventually('the Deployment', () => operator.admin.tryGet(deployments, key('joins-api')))
    await dataMap('joins-a', { [LABEL]: 'joins' }, [
      { name: 'github-mcp', ...image('a') },
      { name: 'slack-mcp', ...image('a') },
    ])
    await served('joins-teams-aggregated', ['github-mcp', 'slack-mcp'])
    await dataMap('joins-b', { [LABEL]: 'joins' }, { 'github-mcp': image('b'), 'snowflake-mcp': image('b') })
    const four = ['joins-a/github-mcp', 'joins-b/github-mcp', 'slack-mcp', 'snowflake-mcp']
    const both = await served('joins-teams-aggregated', four)
    expect(both['joins-b/github-mcp']).toMatchObject(image('b'))
    const changed = { data: { 'registry.json': JSON.stringify({ servers: { 'snowflake-mcp': image('c') } }) } }
    await operator.admin.patch(configMaps, key('joins-b'), { kind: 'merge', body: changed })
    await served('joins-teams-aggregated', ['github-mcp', 'slack-mcp', 'snowflake-mcp'])
    await operator.admin.patch(configMaps, key('joins-b'), { kind: 'merge', body: { metadata: { labels: { [LABEL]: null } } } })
    await served('joins-teams-aggregated', ['github-mcp', 'slack-mcp'])
    await operator.admin.patch(configMaps, key('joins-b'), { kind: 'merge', body: { metadata: { labels: { [LABEL]: 'joins' } } } })
    await served('joins-teams-aggregated', ['github-mcp', 'slack-mcp', 'snowflake-mcp'])
    await operator.admin.delete(configMaps, key('joins-a'))
    await served('joins-teams-aggregated', ['snowflake-mcp'])
    const after = await operator.admin.get(deployments, key('joins-api'))
    expect(after.metadata.generation).toBe(deployment.metadata.generation)
    const output = await operator.admin.get(configMaps, key('joins-teams-aggregated'))
    expect(output.metadata.ownerReferences).toMatchObject([{ kind: 'MCPRegistry', name: 'joins', controller: true }])
  })

  test('[003-008] [003-046] [003-047] [003-048] [003-049] [003-069] serves valid ConfigMaps beside broken ones, and names those', async () => {
    await dataMap('partial-good', { part: 'yes' }, { fetch: image('1') })
    await dataMap('partial-broken', { part: 'yes' }, '{"servers":')
    await dataMap('partial-keyless', { part: 'yes' }, '{}', 'other.json')
    await create('partial', { registries: [{ name: 'teams', configMapSelector: { matchLabels: { part: 'yes' } } }] })
    await served('partial-teams-aggregated', ['fetch'])
    const { status } = await registry('partial', (found) => found.status?.configMaps?.length === 3)
    expect(status?.configMaps).toEqual([
      { registry: 'teams', name: 'partial-broken', servers: 0, error: expect.stringContaining('not JSON') },
      { registry: 'teams', name: 'partial-keyless', servers: 0, error: 'has no key registry.json' },
      { registry: 'teams', name: 'partial-good', servers: 1 },
    ])
    const valid = status?.conditions?.find((each) => each.type === 'SourcesValid')
    expect(valid).toMatchObject({ status: 'False', reason: 'PartialSyncFailure' })
    expect(valid?.message).toContain('2 of 3 ConfigMaps failed: partial-broken, partial-keyless')
    // The lines follow the status.
    for (const name of ['partial-broken', 'partial-keyless'])
      await eventually(`the log line about ${name}`, async () =>
        operator.log.find((line) => line.includes('a selected ConfigMap is invalid') && line.includes(name)),
      )
    await eventually('the Event', async () => {
      const { items } = await operator.admin.list(events, { namespace: operator.namespace })
      return (items as (KubeObject & { reason?: string; type?: string; regarding?: { name?: string } })[]).find(
        (event) => event.reason === 'PartialSyncFailure' && event.type === 'Warning' && event.regarding?.name === 'partial',
      )
    })
  })

  test('[003-005] [003-020] [003-068] [003-071] [003-100] selects by labels and expressions; conflicts are prefixed unless the strategy says otherwise', async () => {
    await dataMap('expr-a', { team: 'a', tier: 'gold' }, { x: image('a') })
    await dataMap('expr-b', { team: 'b', tier: 'gold' }, { x: image('b') })
    await dataMap('expr-c', { team: 'c' }, { x: image('c') })
    const selected = (name: string, configMapSelector: object) =>
      create(name, { registries: [{ name: 'teams', configMapSelector }] } as MCPRegistry['spec'])
    await selected('in', { matchExpressions: [{ key: 'team', operator: 'In', values: ['a', 'b'] }] })
    await served('in-teams-aggregated', ['expr-a/x', 'expr-b/x'])
    await selected('not-in', {
      matchLabels: { tier: 'gold' },
      matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['a'] }],
    })
    await served('not-in-teams-aggregated', ['x'])
    await selected('absent', {
      matchExpressions: [
        { key: 'team', operator: 'Exists' },
        { key: 'tier', operator: 'DoesNotExist' },
      ],
    })
    expect((await served('absent-teams-aggregated', ['x']))['x']).toMatchObject(image('c'))
    await selected('refusing', { matchLabels: { tier: 'gold' }, conflictStrategy: 'error' })
    const refused = await registry('refusing', (found) => condition(found, 'SourcesValid')?.reason === 'NameConflict')
    expect(condition(refused, 'SourcesValid')?.message).toContain('x')
    expect(await operator.admin.tryGet(configMaps, key('refusing-teams-aggregated'))).toBeUndefined()
  })

  test('[003-036] [003-037] [003-042] learns of ConfigMaps from its watch alone, and is not woken by those that no selector matches', async () => {
    await dataMap('watch-a', { watch: 'a' }, { fetch: image('1') })
    // Without an API nothing but ConfigMaps can wake them.
    for (const watch of ['a', 'b']) {
      const registries: MCPRegistry['spec']['registries'] = [{ name: 'teams', configMapSelector: { matchLabels: { watch } } }]
      await create(`watch-${watch}`, { registries, api: { enabled: false } })
    }
    await served('watch-a-teams-aggregated', ['fetch'])
    await registry('watch-a', (found) => condition(found, 'SourcesValid')?.message?.includes('1 servers'))
    const reconciles = () => operator.reconciled.filter((line) => line === 'mcpregistry watch-a').length
    const quiet = async () => {
      const count = reconciles()
      await new Promise((resolve) => setTimeout(resolve, 300))
      return count === reconciles()
    }
    const late = `watch-b-${randomBytes(3).toString('hex')}`
    const joins = async (name: string) => {
      await dataMap(name, { watch: 'b' }, { [name]: image('1') })
      await eventually(`watch-b has ${name}`, async () => {
        const { data } = await operator.admin.get(configMaps, key('watch-b-teams-aggregated'))
        return data?.['registry.json']?.includes(`"${name}"`)
      })
    }
    // One watch brings all ConfigMaps in their order, so after this one it has brought those of watch-a.
    await joins(`${late}-first`)
    await eventually('watch-a is settled', quiet)
    const before = reconciles()
    await joins(late)
    expect(reconciles()).toBe(before)
    // A reconcile asks the API server for no ConfigMap: the watch has told of all.
    const reads = () => operator.calls.all.filter(({ verb, plural }) => plural === 'configmaps' && /get/i.test(verb)).length
    const [asked, listed] = [reads(), operator.lists.length]
    const annotations = { 'toolhive.stacklok.dev/sync-trigger': late }
    await operator.admin.patch(type, key('watch-a'), { kind: 'merge', body: { metadata: { annotations } } })
    await eventually('it is reconciled', async () => reconciles() > before)
    expect(reads()).toBe(asked)
    expect(operator.lists.slice(listed)).not.toContain('configmaps')
  })

  test('ends as the last of many changes says: labels that flip, data and configuration that people edit or delete', async () => {
    await dataMap('flip-a', { flip: 'yes' }, { fetch: image('1') })
    await dataMap('flip-b', { flip: 'yes' }, { time: image('1') })
    await create('flips', { registries: [{ name: 'teams', configMapSelector: { matchLabels: { flip: 'yes' } } }] })
    const [output, config] = [key('flips-teams-aggregated'), key('flips-registry-server-config')]
    await eventually('the data', () => operator.admin.tryGet(configMaps, output))
    const label = (flip: string | null) =>
      operator.admin.patch(configMaps, key('flip-a'), { kind: 'merge', body: { metadata: { labels: { flip } } } })
    for (let turn = 0; turn < 10; turn++) {
      await label('yes')
      await label(null)
    }
    const { data } = await mapWith('flips-teams-aggregated', ['time'])
    const before = await eventually('the configuration', () => operator.admin.tryGet(configMaps, config))
    const restored = (map: typeof output, data: ConfigMap['data']) =>
      eventually(`${map.name} as it was`, async () => {
        const found = await operator.admin.tryGet(configMaps, map)
        return JSON.stringify(found?.data) === JSON.stringify(data)
      })
    for (const [map, was] of [
      [output, data],
      [config, before.data],
    ] as const) {
      const [file = ''] = Object.keys(was ?? {})
      // Data of a registry are the operator's alone; to its configuration others may add.
      const more = map === output ? { extra: 'theirs' } : {}
      await operator.admin.patch(configMaps, map, { kind: 'merge', body: { data: { ...more, [file]: '{}' } } })
      expect(await restored(map, was)).toBe(true)
      await operator.admin.delete(configMaps, map)
      expect(await restored(map, was)).toBe(true)
    }
  })

  test('[003-014] [003-015] gives the server of selected ConfigMaps neither a token nor a right', async () => {
    await dataMap('rights-a', { rights: 'yes' }, { fetch: image('1') })
    await create('rights', { registries: [{ name: 'teams', configMapSelector: { matchLabels: { rights: 'yes' } } }] })
    await served('rights-teams-aggregated', ['fetch'])
    const deployment = await eventually('the Deployment', () => operator.admin.tryGet(deployments, key('rights-api')))
    const pod = deployment.spec?.template?.spec
    expect(pod?.serviceAccountName).toBe('rights-registry-api')
    expect(pod?.['automountServiceAccountToken']).toBe(false)
    expect(JSON.stringify(pod?.volumes)).not.toContain('serviceAccountToken')
    const bindings = (await operator.admin.list(roleBindings, { namespace: operator.namespace })).items
    expect(JSON.stringify(bindings)).not.toContain('rights-registry-api')
    const config = (await operator.admin.get(configMaps, key('rights-registry-server-config'))).data?.['config.yaml'] ?? ''
    expect(config).toContain('path: /registry/teams')
    expect(config).not.toContain('kubernetes')
  })

  test('reads no ConfigMap that no selector matches', async () => {
    await dataMap('quiet-a', { quiet: 'yes' }, { fetch: image('1') })
    await create('quiet', { registries: [{ name: 'teams', configMapSelector: { matchLabels: { quiet: 'yes' } } }] })
    await served('quiet-teams-aggregated', ['fetch'])
    await registry('quiet', (found) => condition(found, 'SourcesValid')?.status === 'True')
    const before = operator.reconciled.filter((line) => line === 'mcpregistry quiet').length
    await dataMap('quiet-other', { quiet: 'no' }, { other: image('1') })
    await dataMap('quiet-marker', { quiet: 'yes' }, { marker: image('1') })
    await served('quiet-teams-aggregated', ['fetch', 'marker'])
    const reads = operator.calls.all.filter(({ plural, name }) => plural === 'configmaps' && name === 'quiet-other')
    expect(reads).toEqual([])
    expect(operator.reconciled.filter((line) => line === 'mcpregistry quiet').length).toBeGreaterThan(before)
  })

  test('[002-258] [002-259] [002-260] [002-261] [002-263] [002-266] [002-267] keeps the data of a source ConfigMap in its storage and follows it', async () => {
    await create('stored', { source: { configMap: { name: 'stored-source' } }, filter: { names: { exclude: ['*-old'] } } })
    const missing = await registry('stored', (found) => found.status?.syncStatus?.phase === 'Failed')
    expect(missing.status).toMatchObject({ phase: 'Failed', syncStatus: { attemptCount: expect.any(Number) } })
    expect(condition(missing, 'SourceAvailable')).toMatchObject({ status: 'False' })
    expect(condition(missing, 'SourceAvailable')?.message).toContain('stored-source')
    await dataMap('stored-source', {}, { fetch: { ...image('1'), anything: { kept: 1.0 } }, 'fetch-old': image('0') })
    expect((await served('stored-registry-storage', ['fetch']))['fetch']).toEqual({ ...image('1'), anything: { kept: 1 } })
    const complete = await registry('stored', (found) => found.status?.syncStatus?.phase === 'Complete')
    expect(complete.status?.syncStatus).toMatchObject({
      attemptCount: 0,
      serverCount: 1,
      lastSyncHash: expect.any(String),
      lastSyncTime: expect.any(String),
    })
    expect(complete.status?.storageRef).toEqual({ type: 'configmap', configMapRef: { name: 'stored-registry-storage' } })
    const storage = await operator.admin.get(configMaps, key('stored-registry-storage'))
    expect(Object.keys(storage.data ?? {})).toEqual(['registry.json'])
    expect(storage.metadata.ownerReferences).toMatchObject([{ kind: 'MCPRegistry', name: 'stored' }])
    const body = { data: { 'registry.json': JSON.stringify({ servers: { other: image('2') } }) } }
    await operator.admin.patch(configMaps, key('stored-source'), { kind: 'merge', body })
    await served('stored-registry-storage', ['other'])
    await operator.admin.patch(configMaps, key('stored-source'), { kind: 'merge', body: { data: { 'registry.json': '{' } } })
    const failed = await registry('stored', (found) => found.status?.syncStatus?.phase === 'Failed')
    expect(failed.status?.syncStatus?.message).toContain('are served')
    await served('stored-registry-storage', ['other'])
  })

  test('[002-276] [002-277] makes the API of each shape, and takes it away with api.enabled: false', async () => {
    await create('api', { configYAML: 'auth: {mode: anonymous}\n' })
    const deployment = await eventually('the Deployment', () => operator.admin.tryGet(deployments, key('api-api')))
    expect(deployment.spec?.template?.spec?.containers[0]).toMatchObject({ name: 'registry-api', command: ['thv-registry-api'] })
    expect((await operator.admin.get(services, key('api-api'))).spec?.ports).toMatchObject([{ name: 'http', port: 8080 }])
    await operator.admin.patch(type, key('api'), { kind: 'merge', body: { spec: { api: { enabled: false } } } })
    await eventually('no Deployment', async () => (await operator.admin.tryGet(deployments, key('api-api'))) === undefined)
    const off = await registry('api', (found) => found.status?.apiStatus?.phase === 'NotStarted')
    expect(off.status?.phase).toBe('Ready')
  })

  test('guards several replicas with a PodDisruptionBudget where the API server has the kind', async () => {
    const secret = { name: 'scaled-db', key: 'password' }
    const databaseConfig = { dbAppUserPasswordSecretRef: secret, dbMigrationUserPasswordSecretRef: secret }
    await create('scaled', { registries: [{ name: 'here', managed: {} }], databaseConfig, replicas: 2 })
    await eventually('two replicas', async () => (await operator.admin.tryGet(deployments, key('scaled-api')))?.spec?.replicas === 2)
    const hasKind = await operator.admin.list(disruptionBudgets, { namespace: operator.namespace }).then(
      () => true,
      (error: unknown) => (isNotFound(error) ? false : Promise.reject(error)),
    )
    const budget = () => operator.admin.tryGet(disruptionBudgets, key('scaled-api'))
    if (hasKind) {
      const made = await eventually('the budget', budget)
      expect(made.spec).toMatchObject({ maxUnavailable: 1, selector: { matchLabels: { 'app.kubernetes.io/name': 'scaled-api' } } })
      expect(made.metadata.ownerReferences).toMatchObject([{ kind: 'MCPRegistry', name: 'scaled', controller: true }])
    }
    await operator.admin.patch(type, key('scaled'), { kind: 'merge', body: { spec: { replicas: 1 } } })
    expect(await eventually('no budget', async () => (await budget()) === undefined)).toBe(true)
    await eventually('one replica', async () => (await operator.admin.get(deployments, key('scaled-api'))).spec?.replicas === 1)
  })

  test('says which object the API server refuses, once for all tries, and heals when it is gone', async () => {
    await dataMap('frozen-a', { frozen: 'yes' }, { fetch: image('1') })
    const selector = { matchLabels: { frozen: 'yes' } }
    await create('frozen', { registries: [{ name: 'teams', configMapSelector: selector }], api: { enabled: false } })
    const output = 'frozen-teams-aggregated'
    await served(output, ['fetch'])
    await registry('frozen', (found) => condition(found, 'Ready')?.status === 'True')
    await operator.admin.patch(configMaps, key(output), { kind: 'merge', body: { immutable: true } })
    await dataMap('frozen-b', { frozen: 'yes' }, { time: image('1') })
    const refused = await registry('frozen', (found) => condition(found, 'Ready')?.reason === 'WriteRefused')
    expect(refused.status).toMatchObject({ phase: 'Failed', message: condition(refused, 'Ready')?.message })
    expect(refused.status?.message).toContain(`does not let the operator update ConfigMap ${output}: it is immutable`)
    expect(refused.status?.message).toContain('Delete it: the operator creates it again.')
    const tries = () => operator.log.filter((line) => line.includes('a reconcile failed') && line.includes('/frozen"')).length
    const before = tries()
    await eventually('it is tried again', async () => tries() >= before + 2)
    expect((await operator.admin.get(type, key('frozen'))).metadata.resourceVersion).toBe(refused.metadata.resourceVersion)
    await operator.admin.delete(configMaps, key(output))
    await served(output, ['fetch', 'time'])
    const healed = await registry('frozen', (found) => condition(found, 'Ready')?.status === 'True')
    expect(healed.status).toMatchObject({ phase: 'Ready' })
  })

  test('leaves the ConfigMap of somebody else alone, says so, and an invalid one can be deleted', async () => {
    await operator.admin.create(configMaps, { metadata: key('taken-registry-server-config'), data: { mine: 'yes' } } as ConfigMap)
    await create('taken', { registries: [{ name: 'a', configMapRef: { name: 'core' } }] })
    const taken = await registry('taken', (found) => condition(found, 'NameConflict')?.status === 'True')
    expect(taken.status?.phase).toBe('Failed')
    expect((await operator.admin.get(configMaps, key('taken-registry-server-config'))).data).toEqual({ mine: 'yes' })
    await create('bad', { registries: [{ name: 'a', git: { repository: 'ssh://git@example.com/r', branch: 'main' } }] })
    const bad = await registry('bad', (found) => condition(found, 'Ready')?.reason === 'ValidationFailed')
    expect(condition(bad, 'SourceAvailable')?.message).toContain('spec.registries[0].git.repository')
    for (const name of ['bad', 'taken']) {
      await operator.admin.delete(type, key(name))
      await eventually(`${name} is gone`, async () => (await operator.admin.tryGet(type, key(name))) === undefined)
    }
  })

  test('a namespace that is deleted takes its registries along without a storm of errors, and the others are served on', async () => {
    const at = (name: string) => ({ namespace: doomed, name })
    const put = (name: string, tag: string) =>
      operator.admin.create(configMaps, {
        metadata: { ...at(name), labels: { doomed: 'yes' } },
        data: { 'registry.json': JSON.stringify({ servers: { [name]: image(tag) } }) },
      } as ConfigMap)
    await put('one', '1')
    await put('two', '1')
    const selector = { name: 'teams', configMapSelector: { matchLabels: { doomed: 'yes' } } }
    await operator.admin.create(type, { metadata: at('merged'), spec: { registries: [selector] } } as MCPRegistry)
    await operator.admin.create(type, { metadata: at('stored'), spec: { source: { configMap: { name: 'one' } } } } as MCPRegistry)
    for (const name of ['merged-teams-aggregated', 'stored-registry-storage'])
      await eventually(name, () => operator.admin.tryGet(configMaps, at(name)))
    await dataMap('beside-a', { beside: 'yes' }, { fetch: image('1') })
    await create('beside', { registries: [{ name: 'teams', configMapSelector: { matchLabels: { beside: 'yes' } } }] })
    await served('beside-teams-aggregated', ['fetch'])

    const warnings = () => operator.log.filter((line) => line.includes('"level":"warn"'))
    const before = warnings().length
    const began = performance.now()
    await operator.admin.delete(namespaces, { name: doomed })
    await eventually('it is gone', async () => (await operator.admin.tryGet(namespaces, { name: doomed })) === undefined, 180_000)
    await dataMap('beside-b', { beside: 'yes' }, { time: image('1') })
    await served('beside-teams-aggregated', ['fetch', 'time'])
    await standstill({ ...operator, namespaces: [operator.namespace] })
    const said = warnings().slice(before)
    // A sync that cannot be stored says so once; a reconcile that cannot create anything any more is simply over.
    expect(said.filter((line) => line.includes('being terminated') && !line.includes('registry sync failed'))).toEqual([])
    // The operator's rights there go too, perhaps first.
    expect(said.length).toBeLessThanOrEqual(failureLimit(2, performance.now() - began))
  })
})
