import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { CLIENT, startTokenServer } from '@thv/auth/outgoing/testing/token-server'
import { createCertificate } from '@thv/http/tls/certificate'
import { createLifecycle } from '@thv/kernel/lifecycle'
import {
  bearerToken,
  type Conditions,
  configMaps,
  createKubeClient,
  events,
  getCondition,
  type KubeClient,
  type KubeObject,
  type ResourceType,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
} from '@thv/kube'
import { mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { mcpServerEntryType } from '@thv/resources/kinds/mcp-server-entry/schema'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { createLogger } from '@thv/telemetry/log'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { type FaultyProxy, startFaultyProxy } from '@thv/testkit/cluster/faults/faulty-proxy'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { connectSdk, type SdkClient } from '@thv/testkit/mcp/testing/sdk-client'
import { accessRules, configMapName } from '@thv/vmcpconfig/discovery/discovery-rules'
import { readVmcpDocument } from '@thv/vmcpconfig/read-vmcp-config'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildProgram } from './program.ts'
import { type GuardedBackend, startGuardedBackend } from './testing/guarded-backend.ts'
import { type RunningVmcp, startVmcp } from './vmcp-server.ts'

const POLL = { timeout: 60_000, interval: 50 }
const NAME = 'joined'

describeCluster('a virtual server that discovers its backends', () => {
  const lifecycle = createLifecycle()
  const stack = new AsyncDisposableStack()
  const log = new CollectingLog()
  let admin: KubeClient
  let namespace = ''
  let api: FaultyProxy
  let running: RunningVmcp
  let session: SdkClient
  let one: GuardedBackend
  let two: GuardedBackend
  let asVmcp: KubeClient

  const document = (more: object = {}) => ({
    ...{ name: NAME, groupRef: 'team', incomingAuth: { type: 'anonymous' }, outgoingAuth: { source: 'discovered' } },
    ...{ aggregation: { conflictResolution: 'prefix' }, remotePolicy: { allowLoopback: true } },
    operational: { failureHandling: { statusReportingInterval: '1s', unhealthyThreshold: 1 } },
    ...more,
  })

  const start = async (end = lifecycle, env: Record<string, string> = { VMCP_NAMESPACE: namespace, VMCP_NAME: NAME }) => {
    const read = readVmcpDocument(document())
    if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
    return await startVmcp({
      ...{ config: read.config, lifecycle: end, log, env, cluster: { client: asVmcp, namespace } },
      ...{ host: '127.0.0.1', port: 0, sessionTtlMs: 60_000, version: '0.0.1', isPod: false },
      // Names of Services lead to the one server that stands for their proxies.
      resolve: async () => [{ address: '127.0.0.1', port: Number(new URL(two.url).port) }],
    })
  }

  const grant = async (secretNames: readonly string[]) => {
    const rules = accessRules({ name: NAME, source: 'discovered', secrets: secretNames, configMaps: ['ca'] })
    const role = { metadata: { name: NAME, namespace }, rules }
    await admin.apply(roles, role, { fieldManager: 'test', force: true })
  }

  beforeAll(async () => {
    admin = adminClient(sharedCluster())
    await installCrds(admin)
    namespace = await testNamespace('vmcp')
    one = stack.use(await startGuardedBackend({ header: 'x-key' }))
    two = stack.use(await startGuardedBackend())
    one.accepts = two.accepts = () => true
    await admin.create(serviceAccounts, { metadata: { name: NAME, namespace } })
    await grant([])
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: NAME }
    const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace }]
    await admin.create(roleBindings, { metadata: { name: NAME, namespace }, roleRef, subjects })
    const response = await admin.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${NAME}/token`, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } },
    })
    const { token } = (response.json() as { status: { token: string } }).status
    const { url, caPem } = sharedCluster()
    api = stack.use(await startFaultyProxy(url))
    asVmcp = createKubeClient({ server: api.url, tls: { ca: caPem }, auth: bearerToken(token) })
    await admin.create(virtualMcpServerType, {
      metadata: { name: NAME, namespace },
      spec: { groupRef: { name: 'team' }, incomingAuth: { type: 'anonymous' } },
    } as never)
    running = await start()
    await running.live.first
    session = await connectSdk(new StreamableHTTPClientTransport(new URL(running.url)), 'legacy')
  })

  afterAll(async () => {
    await session?.[Symbol.asyncDispose]()
    await lifecycle.shutdown('the test is over')
    await asVmcp?.close()
    await admin?.close()
    await stack.disposeAsync()
  })

  const put = async <T extends KubeObject>(type: ResourceType<T>, name: string, body: object, status?: object) => {
    const made = await admin.apply(type, { metadata: { name, namespace }, ...body } as never, { fieldManager: 'test', force: true })
    if (status !== undefined) await admin.patch(type, { name, namespace }, { kind: 'merge', body: { status } }, { subresource: 'status' })
    return made
  }
  const entry = (name: string, url: string, more: object = {}) =>
    put(
      mcpServerEntryType,
      name,
      { spec: { remoteUrl: url, transport: 'streamable-http', insecureAllowHTTP: true, groupRef: { name: 'team' }, ...more } },
      { phase: 'Ready' },
    )
  const names = async () => (await session.client.listTools()).tools.map(({ name }) => name)
  const status = async () => (await admin.get(virtualMcpServerType, { name: NAME, namespace })).status

  test('[002-126] [002-127] [004-003] [004-016] [004-113] [004-119] [004-123] members of all kinds become and cease to be backends, in an open session', async () => {
    expect(await names()).toEqual([])
    await entry('remote', one.url)
    await expect.poll(names, POLL).toEqual(['remote_hello'])
    await put(
      mcpServerType,
      'local',
      { spec: { image: 'i:1', transport: 'streamable-http', groupRef: { name: 'team' } } },
      { url: `http://mcp-local-proxy.${namespace}.svc.cluster.local:8080/mcp` },
    )
    await entry('other', one.url, { groupRef: { name: 'elsewhere' } })
    await expect.poll(names, POLL).toEqual(['local_hello', 'remote_hello'])
    expect(await session.text('local_hello')).toBe('')
    expect(two.backend.requests.at(-1)?.headers.host).toBe(`mcp-local-proxy.${namespace}.svc.cluster.local:8080`)
    expect(session.notifications).toContain('notifications/tools/list_changed')
    await admin.delete(mcpServerType, { name: 'local', namespace })
    await expect.poll(names, POLL).toEqual(['remote_hello'])
  })

  test('[004-010] [004-018] [004-019] [004-035] [004-114] follows authentication and Secrets, without a token request and with nothing less than is asked for', async () => {
    await using tokens = await startTokenServer()
    const secret = (value: string) => put(secrets, 'creds', { stringData: { key: value } })
    await secret('first')
    const headerInjection = { headerName: 'X-Key', valueSecretRef: { name: 'creds', key: 'key' } }
    await put(mcpExternalAuthConfigType, 'own', { spec: { type: 'headerInjection', headerInjection } })
    const tokenExchange = { tokenUrl: tokens.url, clientId: CLIENT.id, audience: 'a' }
    await put(mcpExternalAuthConfigType, 'exchange', { spec: { type: 'tokenExchange', tokenExchange } })
    await entry('exchanged', two.url, { externalAuthConfigRef: { name: 'exchange' } })
    const headerForward = {
      addPlaintextHeaders: { 'X-Plain': 'p' },
      addHeadersFromSecret: [{ headerName: 'X-Secret', valueSecretRef: { name: 'creds', key: 'key' } }],
    }
    await entry('remote', one.url, { externalAuthConfigRef: { name: 'own' }, headerForward })
    // The Role does not name the Secret yet: the entry is left out, not called without its header.
    await expect
      .poll(() => running.live.discovered.leftOut.map(({ name, reason }) => `${name} ${reason}`), POLL)
      .toEqual(['remote NotReady'])
    await grant(['creds'])
    await expect.poll(() => session.text('remote_hello').catch(() => ''), POLL).toBe('first')
    expect(one.backend.requests.at(-1)?.headers).toMatchObject({ 'x-plain': 'p', 'x-secret': 'first' })
    await secret('second')
    await expect.poll(() => session.text('remote_hello'), POLL).toBe('second')
    await put(mcpExternalAuthConfigType, 'own', { spec: { type: 'unauthenticated' } })
    await expect.poll(() => session.text('remote_hello'), POLL).toBe('')
    expect(running.offer.roster.get('exchanged')?.backend.authType).toBe('token_exchange')
    expect(tokens.backend.requests).toHaveLength(0)
    expect(log.lines.join('\n')).not.toMatch(/first|second/)
    await admin.delete(mcpServerEntryType, { name: 'exchanged', namespace })
    await expect.poll(() => running.offer.roster.size, POLL).toBe(1)
  })

  test('[004-020] [004-021] a private CA is trusted by way of caBundleRef, and by no other entry', async () => {
    const ca = createCertificate({ commonName: 'ca', ca: true })
    await using secure = await startGuardedBackend({ tls: createCertificate({ commonName: 's', hosts: ['127.0.0.1'], issuer: ca }) })
    secure.accepts = () => true
    const url = secure.url.replace('http:', 'https:')
    await put(configMaps, 'ca', { data: { 'ca.crt': ca.certPem } })
    await entry('secure', url, { caBundleRef: { configMapRef: { name: 'ca' } } })
    await entry('unknown', url)
    await expect.poll(names, POLL).toEqual(['remote_hello', 'secure_hello'])
    await expect.poll(() => running.offer.roster.get('unknown')?.health.status, POLL).toBe('unhealthy')
    expect(await session.text('secure_hello')).toBe('')
    for (const name of ['secure', 'unknown']) await admin.delete(mcpServerEntryType, { name, namespace })
    await expect.poll(names, POLL).toEqual(['remote_hello'])
  })

  test('[002-159] [002-161] [002-176] reports the health of its backends as one writer of their fields', async () => {
    await expect
      .poll(async () => (await status())?.discoveredBackends, POLL)
      .toMatchObject([{ name: 'remote', status: 'ready', authType: 'unauthenticated', authConfigRef: 'own' }])
    const { metadata, status: now } = await admin.get(virtualMcpServerType, { name: NAME, namespace })
    expect(now?.backendCount).toBe(1)
    expect(getCondition(now?.conditions as Conditions, 'BackendsDiscovered')?.status).toBe('True')
    expect(getCondition(now?.conditions as Conditions, 'ToolConflicts')?.status).toBe('False')
    expect(JSON.stringify(metadata.managedFields)).toContain('"manager":"vmcp"')
    one.isDown = true
    await expect(session.text('remote_hello')).rejects.toThrow()
    await expect.poll(status, POLL).toMatchObject({ backendCount: 0, discoveredBackends: [{ name: 'remote', status: 'unavailable' }] })
    one.isDown = false
    expect(await session.text('remote_hello')).toBe('')
    await expect.poll(status, POLL).toMatchObject({ backendCount: 1, discoveredBackends: [{ name: 'remote', status: 'ready' }] })
  })

  test('reports names that several backends have, with an Event', async () => {
    const aggregation = { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['remote'] } }
    await put(configMaps, configMapName(NAME), { data: { 'config.yaml': JSON.stringify(document({ aggregation })) } })
    await entry('second', two.url)
    const conflicts = async () => getCondition((await status())?.conditions as Conditions, 'ToolConflicts')
    await expect.poll(conflicts, POLL).toMatchObject({ status: 'True', message: 'tool hello of second is lost' })
    const notes = async () => (await admin.list(events, { namespace })).items.map(({ reason, note }) => `${reason} ${note}`)
    await expect.poll(notes, POLL).toContain('NamesConflict tool hello of second is lost')
    await admin.delete(mcpServerEntryType, { name: 'second', namespace })
    await expect.poll(conflicts, POLL).toMatchObject({ status: 'False' })
  })

  test('takes over its ConfigMap, and keeps the last good one', async () => {
    const write = (text: string) => put(configMaps, configMapName(NAME), { data: { 'config.yaml': text } })
    await write(JSON.stringify(document({ aggregation: { conflictResolution: 'prefixOnConflict' } })))
    await expect.poll(names, POLL).toEqual(['hello'])
    await write('name: [')
    await expect
      .poll(async () => getCondition((await status())?.conditions as Conditions, 'BackendsDiscovered')?.status, POLL)
      .toBe('False')
    expect(await names()).toEqual(['hello'])
    await write(JSON.stringify(document()))
    await expect.poll(names, POLL).toEqual(['remote_hello'])
    await expect.poll(async () => getCondition((await status())?.conditions as Conditions, 'BackendsDiscovered')?.status, POLL).toBe('True')
  })

  test('works with a kubeconfig from the command line', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vmcp-kubeconfig-'))
    const file = join(folder, 'config.yaml')
    writeFileSync(file, JSON.stringify(document()))
    const own = createLifecycle()
    const served = Promise.withResolvers<string>()
    const quiet = createLogger({ level: 'error' })
    const program = buildProgram({
      env: {},
      lifecycle: own,
      log: quiet,
      out: (text) => served.resolve(text.split(' ').at(-1)?.trim() ?? ''),
    })
    const flags = ['--config', file, '--port', '0', '--kubeconfig', sharedCluster().kubeconfigPath, '--namespace', namespace]
    const serving = program.parseAsync(['node', 'vmcp', 'serve', ...flags])
    const url = new URL(await served.promise)
    const ready = async () => ((await (await fetch(new URL('/readyz', url))).json()) as { status: string; mode: string }) ?? {}
    await expect.poll(ready, POLL).toEqual({ status: 'ready', mode: 'dynamic' })
    await using client = await connectSdk(new StreamableHTTPClientTransport(url), 'modern')
    expect((await client.client.listTools()).tools.map(({ name }) => name)).toEqual(['remote_hello'])
    await own.shutdown('the test is over')
    await serving
    const printed: string[] = []
    const checking = buildProgram({ env: {}, lifecycle: createLifecycle(), log: quiet, out: (text) => printed.push(text) })
    const cluster = ['--kubeconfig', sharedCluster().kubeconfigPath, '--namespace', namespace]
    await checking.parseAsync(['node', 'vmcp', 'validate', '--connect', '--config', file, ...cluster])
    expect(printed.join('')).toMatch(
      /backends: {2}discovered\n[\s\S]*backends: {2}1\n {2}remote {2}http\S+ {2}\S+\n[\s\S]*tools:\n {2}remote_hello {2}remote hello\n/,
    )
    rmSync(folder, { recursive: true })
  })

  test('after the API server was away it is as after a fresh start', async () => {
    api.blackhole()
    await entry('late', two.url)
    await admin.delete(mcpServerEntryType, { name: 'remote', namespace })
    expect(await session.text('remote_hello')).toBe('') // the last state stays
    api.heal()
    api.dropAll()
    await expect.poll(names, POLL).toEqual(['late_hello'])
    const end = createLifecycle()
    const fresh = await start(end, { VMCP_NAMESPACE: namespace })
    await fresh.live.first
    expect(fresh.offer.members.map(({ backend }) => backend)).toEqual(running.offer.members.map(({ backend }) => backend))
    await end.shutdown('the test is over')
  })
})
