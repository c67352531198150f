import {
  bearerToken,
  createKubeClient,
  isForbidden,
  type KubeClient,
  type ResourceType,
  roleBindings,
  roles,
  serviceAccounts,
} from '@thv/kube'
import { MCP_GROUP_FINALIZER } from '@thv/resources/kinds/mcp-group/constants'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import { type MCPServerEntry, mcpServerEntryType } from '@thv/resources/kinds/mcp-server-entry/schema'
import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operatorAccount } from '../../testing/operator-account.ts'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { type WorkloadSteps, workloadSteps } from '../../testing/workload-steps.ts'

const type = mcpGroupType as ResourceType<MCPGroup>
const image = 'example.test/server:1'
const remoteUrl = 'https://mcp.example.com/mcp'

describeCluster('MCPGroup', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string
  let servers: WorkloadSteps
  let proxies: WorkloadSteps

  beforeAll(async () => {
    operator = await startOperator()
    ;({ admin, namespace } = operator)
    servers = workloadSteps(operator, 'MCPServer')
    proxies = workloadSteps(operator, 'MCPRemoteProxy')
  })
  afterAll(async () => {
    await servers?.cleanUp()
    await proxies?.cleanUp()
    await operator?.stop()
  })

  const at = (name: string) => ({ namespace, name })
  const create = async (name: string, metadata: object = {}) => await admin.create(type, { metadata: { ...metadata, ...at(name) } })
  const createEntry = async (name: string, group: string) =>
    await admin.create(mcpServerEntryType, {
      metadata: at(name),
      spec: { remoteUrl, transport: 'streamable-http', groupRef: { name: group } },
    } as MCPServerEntry)
  const moveEntry = async (name: string, group: string) =>
    await admin.patch(mcpServerEntryType, at(name), { kind: 'merge', body: { spec: { groupRef: { name: group } } } })
  const entryReason = async (name: string) => {
    const { status } = await admin.get(mcpServerEntryType, at(name))
    return status?.conditions?.find((condition) => condition.type === 'GroupRefValidated')?.reason
  }

  const hasMembers = async (name: string, expected: { servers?: string[]; remoteProxies?: string[]; serverEntries?: string[] }) =>
    await eventually(`the members of ${name} are ${JSON.stringify(expected)}`, async () => {
      const { status } = await admin.get(type, at(name))
      const { servers: s = [], remoteProxies: p = [], serverEntries: e = [] } = status ?? {}
      const { servers: wantedServers = [], remoteProxies: wantedProxies = [], serverEntries: wantedEntries = [] } = expected
      if (JSON.stringify([s, p, e]) !== JSON.stringify([wantedServers, wantedProxies, wantedEntries]))
        throw new Error(JSON.stringify(status))
      expect([status?.serverCount, status?.remoteProxyCount, status?.serverEntryCount]).toEqual([s.length + e.length, p.length, e.length])
      return status
    })

  test('lists members of all three kinds, by creation and by deletion, also those that were there before it [002-044] [002-121] [002-122] [004-099] [004-105] [004-107]', async () => {
    await servers.create('early', { image, groupRef: 'team' })
    await servers.hasReason('early', 'GroupRefValidated', 'GroupRefNotFound')
    await create('team')
    await servers.hasReason('early', 'GroupRefValidated', 'GroupRefIsValid')
    await servers.create('broken', { image, groupRef: { name: 'team' }, toolConfigRef: { name: 'absent' } })
    await proxies.create('remote', { remoteUrl, groupRef: 'team' })
    await createEntry('entry', 'team')
    const status = await hasMembers('team', { servers: ['broken', 'early'], remoteProxies: ['remote'], serverEntries: ['entry'] })
    expect(status).toMatchObject({ phase: 'Ready', observedGeneration: 1 })
    expect(status?.conditions).toMatchObject([
      { type: 'MCPServersChecked', status: 'True', reason: 'ListMCPServersCheckSucceeded', message: expect.stringContaining('4 members') },
    ])
    await admin.delete(servers.type, at('early'))
    await admin.delete(proxies.type, at('remote'))
    await admin.delete(mcpServerEntryType, at('entry'))
    await hasMembers('team', { servers: ['broken'] })
  })

  test('a member that moves leaves one group and joins the other [002-114] [002-115] [004-103]', async () => {
    await create('from')
    await create('to')
    await servers.create('mover', { image, groupRef: { name: 'from' } })
    await proxies.create('remote-mover', { remoteUrl, groupRef: { name: 'from' } })
    await createEntry('entry-mover', 'from')
    await hasMembers('from', { servers: ['mover'], remoteProxies: ['remote-mover'], serverEntries: ['entry-mover'] })
    await servers.edit('mover', { groupRef: { name: 'to' } })
    await proxies.edit('remote-mover', { groupRef: { name: 'to' } })
    await moveEntry('entry-mover', 'to')
    await hasMembers('from', {})
    await hasMembers('to', { servers: ['mover'], remoteProxies: ['remote-mover'], serverEntries: ['entry-mover'] })
    await eventually('the member says so', async () => (await servers.get('mover')).status?.['group'] === 'to')
    await servers.edit('mover', { groupRef: null })
    await hasMembers('to', { remoteProxies: ['remote-mover'], serverEntries: ['entry-mover'] })
    await eventually('the member says nothing', async () => (await servers.condition('mover', 'GroupRefValidated')) === undefined)
    expect((await servers.get('mover')).status?.['group']).toBeUndefined()
  })

  test('when it is deleted its members say that it is missing, and run on; a finalizer of another operator does not hold it [002-050] [004-104]', async () => {
    await create('going', { finalizers: [MCP_GROUP_FINALIZER] })
    await servers.create('left', { image, groupRef: { name: 'going' } })
    await proxies.create('remote-left', { remoteUrl, groupRef: { name: 'going' } })
    await createEntry('entry-left', 'going')
    await hasMembers('going', { servers: ['left'], remoteProxies: ['remote-left'], serverEntries: ['entry-left'] })
    await servers.hasReason('left', 'GroupRefValidated', 'GroupRefIsValid')
    await servers.quiet()
    const template = await servers.template('left')
    await admin.delete(type, at('going'))
    await eventually('it is gone', async () => (await admin.tryGet(type, at('going'))) === undefined)
    await servers.hasReason('left', 'GroupRefValidated', 'GroupRefNotFound')
    await proxies.hasReason('remote-left', 'GroupRefValidated', 'GroupRefNotFound')
    await eventually('the entry says so', async () => (await entryReason('entry-left')) === 'GroupRefNotFound')
    expect(await servers.template('left')).toBe(template)
    await create('going')
    await servers.hasReason('left', 'GroupRefValidated', 'GroupRefIsValid')
    await hasMembers('going', { servers: ['left'], remoteProxies: ['remote-left'], serverEntries: ['entry-left'] })
  })

  itNeeds(
    ['rbac'],
    'a team with rights on mcpserverentries alone adds a backend to a group, and can change nothing else [004-056]',
    async () => {
      await create('shared')
      const rules = [{ apiGroups: ['toolhive.stacklok.dev'], resources: ['mcpserverentries'], verbs: ['create'] }]
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'product-team' }
      await admin.create(serviceAccounts, { metadata: at('product-team') })
      await admin.create(roles, { metadata: at('product-team'), rules })
      await admin.create(roleBindings, {
        ...{ metadata: at('product-team'), roleRef },
        subjects: [{ kind: 'ServiceAccount', name: 'product-team', namespace }],
      })
      const answer = await admin.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/product-team/token`, {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
      })
      const { token } = (answer.json() as { status: { token: string } }).status
      const { url, caPem } = sharedCluster()
      const team = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(token) })
      try {
        await team.create(mcpServerEntryType, {
          metadata: at('of-the-team'),
          spec: { remoteUrl, transport: 'streamable-http', groupRef: { name: 'shared' } },
        } as MCPServerEntry)
        await hasMembers('shared', { serverEntries: ['of-the-team'] })
        await expect(team.create(type, { metadata: at('of-its-own') })).rejects.toMatchObject({ status: 403 })
        await expect(team.patch(type, at('shared'), { kind: 'merge', body: { spec: { description: 'ours' } } })).rejects.toMatchObject({
          status: 403,
        })
      } finally {
        await team.close()
      }
    },
  )

  test('is Pending before an operator has examined it [002-120]', async () => {
    const unwatched = await testNamespace('unwatched')
    const metadata = { namespace: unwatched, name: 'new' }
    expect((await admin.create(type, { metadata })).status).toEqual({ phase: 'Pending' })
    expect((await admin.get(type, metadata)).status).toEqual({ phase: 'Pending' })
    expect((await admin.list(type, { namespace: unwatched })).items.map(({ status }) => status)).toEqual([{ phase: 'Pending' }])
  })

  itNeeds(['rbac'], 'is Failed while the operator may not list its members, and Ready once it may [002-120]', async () => {
    const own = await testNamespace('unlisted')
    const metadata = { namespace: own, name: 'hidden' }
    await admin.create(type, { metadata })
    await admin.create(servers.type, {
      metadata: { namespace: own, name: 'member' },
      spec: { image, groupRef: { name: 'hidden' } },
    } as never)
    const token = await operatorAccount(admin, { namespace: own, watched: [own] })
    const role = { namespace: own, name: 'toolhive-operator-manager' }
    const { rules = [] } = await admin.get(roles, role)
    const fewer = rules.map((rule) => ({ ...rule, resources: (rule.resources ?? []).filter((name) => name !== 'mcpservers') }))
    await admin.patch(roles, role, { kind: 'merge', body: { rules: fewer.filter(({ resources }) => resources.length > 0) } })
    // The API server hears of changed rights a moment later, and an operator that could list once has nothing to report.
    const { url, caPem } = sharedCluster()
    const account = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(token) })
    await eventually('the rights are in force', async () => {
      await account.list(type, { namespace: own })
      return await account.list(servers.type, { namespace: own }).then(() => false, isForbidden)
    }).finally(() => account.close())
    const limited = await startOperator({ namespace: own, token, waitsForCaches: false })
    const status = async (phase: string) =>
      await eventually(`the group is ${phase}`, async () => {
        const { status: now } = await admin.get(type, metadata)
        if (now?.phase !== phase) throw new Error(JSON.stringify(now))
        return now
      })
    try {
      expect((await status('Failed')).conditions).toMatchObject([
        { status: 'False', reason: 'ListMCPServersCheckFailed', message: expect.stringContaining('MCPServer cannot be listed') },
      ])
      await admin.patch(roles, role, { kind: 'merge', body: { rules } })
      expect(await status('Ready')).toMatchObject({ servers: ['member'], serverCount: 1 })
    } finally {
      await limited.stop()
    }
  })

  test('groups are not looked at for what is not theirs', async () => {
    await create('still')
    await hasMembers('still', {})
    await servers.quiet()
    operator.calls.clear()
    const group = operator.manager.controllers.find(({ name }) => name === 'mcpgroup')
    const before = group?.stats.reconciles
    await servers.create('loner', { image })
    await servers.settled('loner')
    await servers.edit('loner', { proxyPort: 9000 })
    await servers.settled('loner')
    await servers.quiet()
    expect(group?.stats.reconciles).toBe(before)
    expect(operator.calls.writes.filter(({ plural }) => plural === 'mcpgroups')).toEqual([])
  })

  test('is reconciled once when many members come at a time [004-103]', async () => {
    await create('crowd')
    await hasMembers('crowd', {})
    operator.calls.clear()
    const names = Array.from({ length: 20 }, (_, index) => `member-${String(index).padStart(2, '0')}`)
    await Promise.all(names.map((name) => createEntry(name, 'crowd')))
    await hasMembers('crowd', { serverEntries: names })
    await servers.quiet()
    // Few writes for many events; never more than one for each.
    expect(operator.calls.writes.filter(({ plural }) => plural === 'mcpgroups').length).toBeLessThanOrEqual(names.length)
  })
})
