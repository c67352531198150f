import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ConfigMap, configMaps, deployments, isAlreadyExists, type KubeClient, leases, type ResourceType } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LEASE_NAME } from './operator-settings.ts'
import { operatorAccount } from './testing/operator-account.ts'
import { eventually, startOperator } from './testing/operator-harness.ts'
import { workloadSteps } from './testing/workload-steps.ts'

const registryType = mcpRegistryType as unknown as ResourceType<MCPRegistry>
const BIN = fileURLToPath(new URL('../bin/thv-operator.js', import.meta.url))

/** The program as people start it, on an API server of its own: at first without our kinds. */
describeCluster('thv-operator', () => {
  let server: TestServer
  let admin: KubeClient
  let namespace: string
  let folder: string
  let kubeconfig: string
  const running: ChildProcess[] = []

  beforeAll(async () => {
    server = await startTestServer()
    admin = adminClient(server)
    namespace = await testNamespace('process', server)
    folder = await mkdtemp(join(tmpdir(), 'thv-operator-'))
    kubeconfig = await kubeconfigOf('operator', await operatorAccount(admin, { namespace, watched: undefined }))
  })
  afterAll(async () => {
    for (const child of running) if (child.exitCode === null) child.kill('SIGKILL')
    await admin?.close()
    await server?.stop()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  async function kubeconfigOf(name: string, token: string): Promise<string> {
    const path = join(folder, name)
    const cluster = { server: server.url, 'certificate-authority-data': Buffer.from(server.caPem).toString('base64') }
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }
    await writeFile(path, JSON.stringify(config), { mode: 0o600 })
    return path
  }

  function start(...args: string[]) {
    const env = { PATH: process.env['PATH'] ?? '', POD_NAMESPACE: namespace, POD_NAME: 'the-pod' }
    const child = spawn(process.execPath, [BIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const said = { out: '', err: '' }
    child.stdout.on('data', (chunk: Buffer) => (said.out += chunk))
    child.stderr.on('data', (chunk: Buffer) => (said.err += chunk))
    const ended = once(child, 'close').then(([code]) => code as number | null)
    running.push(child)
    return { child, said, ended }
  }

  const ADDRESSES = ['--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', '127.0.0.1:0']

  const urlOf = async (said: { out: string; err: string }, port: string) =>
    await eventually(`it says where ${port} is`, async () => {
      const lines = `${said.out}${said.err}`.split('\n').filter((line) => line.startsWith('{'))
      return lines.map((line) => JSON.parse(line) as { port?: string; url?: string }).find((line) => line.port === port)?.url
    })
  const get = async (url: string) => await fetch(url, { signal: AbortSignal.timeout(30_000) })

  test('explains itself', async () => {
    const { ended, said } = start('--help')
    expect(await ended).toBe(0)
    for (const word of ['--leader-elect', '--kubeconfig', 'WATCH_NAMESPACE', 'TOOLHIVE_RUNNER_IMAGE', 'thv crds'])
      expect(said.out).toContain(word)
    expect(said.err).toBe('')
  })

  test.each([
    [['--what'], '--what'],
    [['--lease-duration', 'soon'], '--lease-duration'],
    [['--metrics-bind-address', 'everywhere'], '--metrics-bind-address'],
    [['extra'], 'thv-operator'],
  ])('says in one line what is wrong with %j', async (args, word) => {
    const { ended, said } = start(...args)
    expect(await ended).toBe(2)
    expect(said.err.trimEnd().split('\n')).toEqual([expect.stringMatching(/^thv-operator: .+/)])
    expect(said.err).toContain(word)
  })

  test('says in one line that the cluster does not know our kinds, and how to teach it', async () => {
    const { ended, said } = start('--kubeconfig', kubeconfig, ...ADDRESSES)
    expect(await ended).toBe(2)
    expect(said.err.trimEnd().split('\n')).toHaveLength(1)
    expect(said.err).toContain('MCPServer')
    expect(said.err).toContain('thv crds | kubectl apply -f -')
  })

  test('works, tells its health and its metrics, and ends cleanly at SIGTERM', async () => {
    await installCrds(admin)
    const { child, ended, said } = start('--kubeconfig', kubeconfig, '--leader-elect', ...ADDRESSES)
    const health = await urlOf(said, 'health')
    const metrics = await urlOf(said, 'metrics')
    expect((await get(new URL('/healthz', health).href)).status).toBe(200)
    await eventually('it is ready', async () => (await get(new URL('/readyz', health).href)).status === 200)
    expect((await get(new URL('/', health).href)).status).toBe(404)

    // Without WATCH_NAMESPACE it looks after all of them.
    for (const place of [namespace, await testNamespace('elsewhere', server)]) {
      const at = { namespace: place, name: 'served' }
      await admin.create(mcpServerType, { metadata: at, spec: { image: 'example.test/server:1' } })
      await eventually('the Deployment', () => admin.tryGet(deployments, at))
      await eventually('the status', async () => (await admin.get(mcpServerType, at)).status?.phase === 'Pending')
    }
    const text = await (await get(new URL('/metrics', metrics).href)).text()
    expect(text).toContain('thv_operator_leader 1')
    expect(text).toMatch(/^toolhive_memory_releases_total\{result="done"\} \d+$/m)
    expect(text).toMatch(/thv_operator_reconciles_total\{controller="mcpserver",result="requeueAfter"\} [1-9]/)
    expect(text).toMatch(/thv_operator_queue_depth\{controller="mcpserver"\} \d/)
    expect(text).toContain('thv_operator_reconcile_seconds_bucket')
    expect((await admin.get(leases, { namespace, name: LEASE_NAME })).spec?.holderIdentity).toMatch(/^the-pod_/)

    child.kill('SIGTERM')
    expect(await ended).toBe(0)
    // The next one need not wait.
    expect((await admin.get(leases, { namespace, name: LEASE_NAME })).spec?.holderIdentity ?? '').toBe('')
    expect(`${said.out}${said.err}`).not.toMatch(/"level":"(warn|error)"|Error:/)
  })

  itNeeds(['rbac'], 'without the rights it needs it is alive, not ready, says why, and still ends when told to', async () => {
    const powerless = await kubeconfigOf('powerless', await server.serviceAccountToken({ namespace, name: 'powerless' }))
    const { child, ended, said } = start('--kubeconfig', powerless, ...ADDRESSES)
    const health = await urlOf(said, 'health')
    await eventually('it says why', async () => /mcpservers.*forbidden|forbidden.*mcpservers/i.test(`${said.out}${said.err}`))
    expect((await get(new URL('/healthz', health).href)).status).toBe(200)
    expect((await get(new URL('/readyz', health).href)).status).toBe(503)
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  })

  const names = Array.from({ length: 50 }, (_, index) => `server-${index}`)
  /** As somebody would who does not give up. */
  const insist = async (name: string) =>
    await eventually(`${name} is created`, async () => {
      try {
        return await admin.create(mcpServerType, { metadata: { name, namespace }, spec: { image: 'example.test/server:1' } })
      } catch (error) {
        if (isAlreadyExists(error)) return true
        throw error
      }
    })

  test('an API server that goes away in the middle of much work: all is done in the end, and an operator that starts again writes nothing [002-010] [002-195]', async () => {
    const operator = await startOperator({ cluster: server, namespace })
    try {
      operator.calls.clear()
      const creating = names.map(insist)
      await eventually('some are made', async () => operator.calls.writes.length > 100)
      await server.kill()
      await server.restart()
      await Promise.all(creating)
      await eventually(
        'all servers have a status',
        async () => {
          const { items } = await admin.list(mcpServerType, { namespace })
          return items.length === names.length + 1 && items.every(({ status }) => status?.phase === 'Pending')
        },
        90_000,
      )
      expect((await admin.list(deployments, { namespace })).items).toHaveLength(names.length + 1)
      // It watches on.
      await admin.delete(deployments, { namespace, name: 'server-8' })
      await eventually('it is made again', () => admin.tryGet(deployments, { namespace, name: 'server-8' }))
      await workloadSteps(operator, 'MCPServer').quiet()
      expect(operator.log.join('')).not.toContain('the operator failed')
    } finally {
      await operator.stop()
    }
    const again = await startOperator({ cluster: server, namespace })
    try {
      await workloadSteps(again, 'MCPServer').quiet()
      expect(again.manager.controllers.find(({ name }) => name === 'mcpserver')?.stats.reconciles).toBeGreaterThan(names.length)
      expect(again.calls.writes).toEqual([])
    } finally {
      await again.stop()
    }
  })

  test('an API server that goes away in the middle of writing registry data: no server is ever missing, and in the end all are as the last change says', async () => {
    const place = await testNamespace('registries', server)
    const at = (name: string) => ({ namespace: place, name })
    const teams = ['a', 'b', 'c', 'd']
    /** 1.2 MB for all teams, so they need several ConfigMaps. */
    const data = (team: string, tag: string) => {
      const servers = Array.from({ length: 60 }, (_, index) => [
        `${team}-${index}`,
        { image: `example.com/${team}:${tag}`, description: 'x'.repeat(5_000) },
      ])
      return { 'registry.json': JSON.stringify({ servers: Object.fromEntries(servers) }) }
    }
    /** Of all servers in the merged data. */
    const images = async () => {
      const labelSelector = 'app.kubernetes.io/component=registry-aggregate'
      const { items } = await admin.list(configMaps, { namespace: place, labelSelector })
      const files = items.map((map) => JSON.parse(map.data?.['registry.json'] ?? '{}') as { servers?: Record<string, { image: string }> })
      return files.flatMap(({ servers = {} }) => Object.values(servers).map(({ image }) => image))
    }
    const all = (tag: string) => teams.flatMap((team) => Array.from({ length: 60 }, () => `example.com/${team}:${tag}`))
    const isAll = async (tag: string) => (await images()).toSorted().join() === all(tag).toSorted().join()
    const operator = await startOperator({ cluster: server, namespace: place })
    try {
      for (const team of teams)
        await admin.create(configMaps, { metadata: { ...at(team), labels: { team: 'yes' } }, data: data(team, '1') } as ConfigMap)
      const selector = { name: 'teams', configMapSelector: { matchLabels: { team: 'yes' } } }
      await admin.create(registryType, { metadata: at('merged'), spec: { registries: [selector], api: { enabled: false } } } as MCPRegistry)
      await eventually('all are merged', () => isAll('1'))

      operator.calls.clear()
      const changing = teams.map((team) =>
        eventually(
          `${team} is changed`,
          () => admin.patch(configMaps, at(team), { kind: 'merge', body: { data: data(team, '2') } }),
          60_000,
        ),
      )
      await eventually('some ConfigMaps are written', async () => operator.calls.writes.length > 2)
      await server.kill()
      await server.restart()
      expect(await eventually('the API server answers', images)).toHaveLength(all('1').length)
      await Promise.all(changing)
      await eventually('all are merged again', () => isAll('2'), 180_000)
      await eventually('it is ready', async () => (await admin.get(registryType, at('merged'))).status?.phase === 'Ready')
      expect(operator.log.join('')).not.toContain('the operator failed')
    } finally {
      await operator.stop()
    }
  })
})
