import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  configMaps,
  deployments,
  pods,
  replicaSets,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
  statefulSets,
} from '@thv/kube'
import { memorySettings } from '@thv/programs/memory-settings'
import { request as apiCall } from '@thv/testkit/cluster/http-request'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, connect, namesOf, whoAmI } from '../e2e/stories/clients.ts'
import { waitForServers } from '../e2e/stories/registry-client.ts'
import { GROUP, REGISTRY, SERVER, VIRTUAL, type World } from '../e2e/stories/world.ts'
import { accessTo, eventually, fixtureFolder, worldOf } from './fixture-platform.ts'
import { allGone, processesOf } from './folder-processes.ts'
import type { DataFolder, PlatformProcess } from './platform-process.ts'
import { commandsWith } from './process-list.ts'
import { kubectl, kubectlMissing, shown, thv } from './thv-command.ts'

/* Demonstrations of the platform, with kubectl where there is one, `thv`, and the official clients. */

const NAMESPACE = 'shows'
const CHILDREN = [deployments, replicaSets, statefulSets, pods, services, configMaps, serviceAccounts, roles, roleBindings]

/** Of an `initialize` with the given headers, whatever they are: `fetch` would choose the Host itself. */
async function statusOf(url: string, headers: Record<string, string>): Promise<number | undefined> {
  const type = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const call = request(url, { method: 'POST', headers: { ...type, ...headers }, timeout: 60_000 })
  call.on('timeout', () => call.destroy(new Error('no answer within 60 s')))
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } }
  call.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }))
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  response.destroy()
  return response.statusCode
}

/** Command lines and environments of all Node processes of a platform, as `ps` shows them; guards are shells. */
function nodeProcesses(platform: PlatformProcess): string[] {
  const pids = [platform, ...processesOf(platform)].map(({ pid }) => pid)
  const { stdout } = spawnSync('ps', ['e', '-ww', '-o', 'pid=,args=', '-p', pids.join(',')], { encoding: 'utf8' })
  return stdout.split('\n').filter((line) => /^\s*\d+ \S*node /.test(line))
}

describe('on the local platform', () => {
  let folder: DataFolder
  let platform: PlatformProcess
  let world: World
  let empty: string[]
  /** The guard of the registry among them. */
  let first: readonly number[]
  beforeAll(async () => {
    folder = await fixtureFolder()
    platform = await folder.up('--bare')
    world = await worldOf(platform, NAMESPACE)
    await eventually('the namespace has its own objects', async () => {
      empty = await namesOfAll(world)
      return empty.length >= 2
    })
    await eventually('the registry answers', async () => /^registry +ready /m.test(await thv(platform, 'status')))
    first = processesOf(platform).map(({ pid }) => pid)
    await world.create(SERVER, 'piped', { image: world.images.fixture, args: ['--name', 'piped'] })
    await world.create(GROUP, 'desk', {})
    const web = { image: world.images.fixture, transport: 'streamable-http', args: ['--name', 'web'] }
    await world.create(SERVER, 'web', { ...web, groupRef: { name: 'desk' } })
    for (const name of ['piped', 'web']) await world.reaches(SERVER, name, 'Running')
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  const urlOf = async (name: string) => (await world.client.get(SERVER, world.at(name))).status?.url ?? ''

  test('both servers answer clients of all sorts, and are listed as Running with their URLs', async () => {
    for (const name of ['piped', 'web']) {
      const url = await urlOf(name)
      for (const sdk of ['v1', 'v2'] as const) {
        await using client = await connect(sdk, url)
        expect(namesOf(await client.tools())).toContain('echo')
        expect((await whoAmI(client)).name).toBe(name)
      }
      expect(await thv(platform, 'tools', name, '-n', NAMESPACE)).toMatch(/\becho\b/)
      expect(await thv(platform, 'call', name, 'echo', 'message=hello', '-n', NAMESPACE)).toContain('hello')
      const row = new RegExp(`^${name} .*Running .*${url}`, 'm')
      expect(await thv(platform, 'get', 'mcpservers', '-n', NAMESPACE)).toMatch(row)
      if (kubectlMissing() === undefined) expect(await kubectl(platform, 'get', 'mcpservers', '-n', NAMESPACE)).toMatch(row)
    }
  })

  test('ps shows the memory settings of the platform and our programs, and none for the servers behind them', async () => {
    await world.create(VIRTUAL, 'joined', {
      groupRef: { name: 'desk' },
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
    })
    await eventually('the virtual server runs', () => nodeProcesses(platform).some((line) => line.includes('apps-vmcp-src-main')))
    const lines = nodeProcesses(platform)
    const settings = Object.entries(memorySettings(process.env)).map(([name, value]) => new RegExp(`\\s${name}=[^=]*${value}(\\s|$)`))
    const missing = (line: string) => settings.filter((setting) => !setting.test(line))
    const programs = ['apps-operator', 'apps-proxyrunner', 'apps-registry', 'apps-vmcp'].map((name) => `${name}-src-main`)
    for (const program of ['thv.js up ', ...programs]) {
      const own = lines.filter((line) => line.includes(program))
      expect([program, own.length > 0, own.flatMap(missing)]).toEqual([program, true, []])
    }
    const servers = lines.filter((line) => line.includes('fixture-image-main'))
    expect(servers.length).toBeGreaterThanOrEqual(2)
    for (const line of servers) expect(line).not.toMatch(/semi-space|MALLOC_/)
    await world.client.delete(VIRTUAL, world.at('joined'))
    await eventually('the virtual server is gone', () => !nodeProcesses(platform).some((line) => line.includes('apps-vmcp-src-main')))
  })

  test('the platform counts how often it gave memory back', async () => {
    const { url, caPem, adminToken } = await accessTo(platform)
    const page = await apiCall(`${url}/metrics`, { caPem, headers: { authorization: `Bearer ${adminToken}` } })
    expect(page.text).toMatch(/^toolhive_memory_releases_total\{result="done"\} \d+$/m)
    expect(page.text).toMatch(/^process_resident_memory_bytes \d+$/m)
  })

  test('the pages "protect your first server" and "keep an audit log": their commands guard a server, get a token and show events', async () => {
    const page = await readFile(new URL('../../docs/how-to/protect-your-first-server.md', import.meta.url), 'utf8')
    const auditPage = await readFile(new URL('../../docs/how-to/audit.md', import.meta.url), 'utf8')
    const [, example = '', logs = ''] = /^kubectl apply -f (\S+)\nkubectl (logs .*)$/m.exec(auditPage) ?? []
    const audited = (await readFile(new URL(`../../${example}`, import.meta.url), 'utf8')).replace(
      /image: \S+/,
      `image: ${world.images.fixture}`,
    )
    const manifest = /```yaml\n(apiVersion[^`]*)```/.exec(page)?.[1] ?? ''
    const file = join(platform.folder, 'guarded.yaml')
    await using cleanup = new AsyncDisposableStack()
    for (const name of ['guarded', 'audited'])
      cleanup.defer(async () => void (await thv(platform, 'delete', 'mcpserver', name, '-n', NAMESPACE)))
    await writeFile(file, `${manifest.replace(/image: \S+/, `image: ${world.images.fixture}`)}---\n${audited}`)
    await thv(platform, 'apply', '-f', file, '-n', NAMESPACE)
    await world.reaches(SERVER, 'guarded', 'Running')
    expect(await thv(platform, 'describe', 'mcpserver', 'guarded', '-n', NAMESPACE)).toMatch(/Authenticated +True/)
    const url = await urlOf('guarded')
    const { host } = new URL(url)
    expect(await statusOf(url, { host })).toBe(401)
    const command = /^kubectl --kubeconfig \S+ (create token .*)$/m.exec(page)?.[1]?.split(' ') ?? []
    expect(command).toEqual(['create', 'token', 'default', '--audience', 'toolhive'])
    if (kubectlMissing() !== undefined) return
    const token = (await kubectl(platform, ...command, '-n', NAMESPACE)).trim()
    await eventually('the token is accepted', async () => (await statusOf(url, { host, authorization: `Bearer ${token}` })) === 200)
    const curl = /^curl [^`]*/m.exec(page)?.[0].replace('URL', url).replace('TOKEN', token) ?? ''
    const run = promisify(execFile)
    // Some machines have no curl; the request itself is made above, too.
    if (await run('curl', ['--version']).then(Boolean, () => false))
      expect((await run('sh', ['-c', curl], { timeout: 60_000 })).stdout).toMatch(/^HTTP\/1.1 200 /)
    await world.reaches(SERVER, 'audited', 'Running')
    await eventually('the server answers', async () => (await statusOf(await urlOf('audited'), {})) === 200)
    await eventually('the log has its event', async () =>
      /"audit_event".*"mcp_initialize"/.test(await kubectl(platform, ...logs.split(' '), '-n', NAMESPACE)),
    )
    // The API server takes it for nothing: it was made for another audience.
    const { url: server } = await accessTo(platform)
    await expect(kubectl(platform, 'get', 'pods', '--server', server, '--token', token)).rejects.toThrow(/Unauthorized|logged in/)
  })

  test('the pages about credentials, limits and telemetry: their commands do what they say', async () => {
    const commandsOf = async (page: string) => {
      const text = await readFile(new URL(`../../docs/how-to/${page}.md`, import.meta.url), 'utf8')
      const commands = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) => block.trim().split('\n'))
      return { commands, manifest: /^```yaml\n(apiVersion[\s\S]*?)^```/m.exec(text)?.[1] ?? '' }
    }
    const credentials = await commandsOf('backend-credentials')
    const [limits, telemetry] = [await commandsOf('limits-and-redis'), await commandsOf('telemetry')]
    expect([credentials, limits, telemetry].map(({ commands }) => commands.length)).toEqual([3, 4, 2])
    if (kubectlMissing() !== undefined) return
    await using pages = await worldOf(platform, 'pages')
    const run = (command: string) => shown(platform, 'pages', command)
    await using cleanup = new AsyncDisposableStack()
    cleanup.defer(async () => void (await run('kubectl delete mcpserver --all')))

    const file = join(platform.folder, 'tickets-token.yaml')
    await writeFile(file, credentials.manifest)
    const [createSecret = '', apply = '', wait = ''] = credentials.commands
    await run(createSecret)
    expect(await run(apply.replace('tickets-token.yaml', file))).toMatch(/tickets-token created/)
    expect(await run(wait)).toMatch(/tickets-token condition met/)

    await pages.create(SERVER, 'limited', { image: pages.images.fixture, transport: 'streamable-http' })
    const [limit = '', firstCall = '', secondCall = '', redisSecret = ''] = limits.commands.map((command) =>
      command.replace(' NAME ', ' limited '),
    )
    const [patch = '', curl = ''] = telemetry.commands.map((command) => command.replace(' NAME ', ' limited '))
    await run(redisSecret)
    const { data } = await pages.client.get(secrets, pages.at('redis'))
    expect(Buffer.from(data?.['encryption-key'] ?? '', 'base64').toString()).toMatch(/^[\w+/]{43}=$/)
    await run(limit)
    await run(patch)
    const { url = '' } = await pages.reaches(SERVER, 'limited', 'Running')
    // Proxies before have no limit, and go on for a moment.
    await pages.eventually('one proxy is left', async () => (await pages.proxyPods('limited')).length === 1)
    const metrics = await eventually('the new proxy shows its metrics', async () => await run(curl.replace('ADDRESS', new URL(url).origin)))
    expect(metrics).toMatch(/^toolhive_mcp_/m)
    expect(await run(firstCall)).toContain('first')
    await expect(run(secondCall)).rejects.toThrow(/rate limit/i)
  })

  test('[003-061] the page "run a registry on Kubernetes": its commands make a registry, and a label adds and removes servers', async () => {
    const page = await readFile(new URL('../../docs/how-to/kubernetes-registry.md', import.meta.url), 'utf8')
    const manifest = /```yaml\n(apiVersion[^`]*)```/.exec(page)?.[1] ?? ''
    const labels = [...page.matchAll(/^kubectl (label configmap .*)$/gm)].map((match) => match[1]?.split(' ') ?? [])
    expect(labels).toHaveLength(2)
    const file = join(platform.folder, 'teams.yaml')
    await using cleanup = new AsyncDisposableStack()
    cleanup.defer(async () => {
      await thv(platform, 'delete', 'mcpregistry', 'teams', '-n', NAMESPACE)
      for (const name of ['team-a', 'team-b']) await world.client.delete(configMaps, world.at(name))
      await eventually('its objects are gone', async () => !(await namesOfAll(world)).some((name) => name.includes('teams')))
    })
    await writeFile(file, manifest)
    await thv(platform, 'apply', '-f', file, '-n', NAMESPACE)
    await world.reaches(REGISTRY, 'teams', 'Ready')
    const own = (name: string) => `io.github.stacklok/${name}`
    const alone = [own('github-mcp'), own('slack-mcp')]
    await waitForServers(world, 'teams', alone)
    const expected = [['team-a/github-mcp', 'team-b/github-mcp', own('slack-mcp')], alone]
    if (kubectlMissing() !== undefined) return
    for (const [i, command] of labels.entries()) {
      await kubectl(platform, ...command, '-n', NAMESPACE)
      await waitForServers(world, 'teams', expected[i] ?? [])
    }
  })

  test('a web page under a foreign name gets nothing from the servers (DNS rebinding)', async () => {
    for (const name of ['piped', 'web']) {
      const url = await urlOf(name)
      const { host } = new URL(url)
      const foreign = { host: 'evil.example.com:8080', origin: 'http://evil.example.com:8080' }
      expect([name, await statusOf(url, foreign)]).toEqual([name, 403])
      expect([name, await statusOf(url, { host, origin: 'http://evil.example.com' })]).toEqual([name, 403])
      expect([name, await statusOf(url, { host })]).toEqual([name, 200])
      expect([name, await statusOf(url, { host, origin: `http://${host}` })]).toEqual([name, 200])
      for (const own of [`mcp-${name}-proxy.${NAMESPACE}.svc.cluster.local:8080`, `${name}.${NAMESPACE}`])
        expect([own, await statusOf(url, { host: own })]).toEqual([own, 200])
    }
  })

  test('a registry of public servers stands beside it: it is searched, and comes back when it is killed', async () => {
    const search = () => thv(platform, 'search', 'kubernets', 'logs')
    await eventually('the registry answers', async () => /^registry +ready /m.test(await thv(platform, 'status')))
    expect((await search()).split('\n')[1]).toMatch(/^io\.github\.containers\/kubernetes-mcp-server +[\d.]+ +npm +\S/)
    const [, url = ''] = /^registry +ready (\S+)/m.exec(await thv(platform, 'status')) ?? []
    const listed = async () => {
      const answer = await fetch(`${url}/default/v0.1/servers?limit=100`)
      return ((await answer.json()) as { servers: { server: { name: string } }[] }).servers.map(({ server }) => server.name)
    }
    expect((await listed()).length).toBeGreaterThanOrEqual(25)
    // It lists the servers of all namespaces that are marked for it.
    const annotations = {
      'toolhive.stacklok.dev/registry-export': 'true',
      'toolhive.stacklok.dev/registry-url': await urlOf('web'),
      'toolhive.stacklok.dev/registry-description': 'The server of this test',
    }
    await world.client.patch(SERVER, world.at('web'), { kind: 'merge', body: { metadata: { annotations } } })
    await eventually('the server is listed', async () => (await listed()).includes(`dev.stacklok.toolhive/${NAMESPACE}.web`))
    expect(await thv(platform, 'search', 'server', 'of', 'this', 'test')).toContain(`dev.stacklok.toolhive/${NAMESPACE}.web`)

    // The guard of the process has its command line, too.
    const servers = commandsWith('apps-registry-src-main').filter(({ command }) => command.startsWith(process.execPath))
    const found = processesOf(platform).filter(({ pid }) => servers.some((each) => each.pid === pid))
    expect(found).toHaveLength(1)
    for (const { pid } of found) process.kill(pid, 'SIGKILL')
    await allGone(found)
    await eventually('it is back at its address', async () => /^registry +ready /m.test(await thv(platform, 'status')))
    expect(await search()).toContain('kubernetes-mcp-server')
    expect(await thv(platform, 'status')).toContain(url)
  })

  test(`a stdio server without Redis keeps one proxy, however it is scaled (${scaledBy()})`, async () => {
    await scale('piped', 3)
    await world.hasReason(SERVER, 'piped', { condition: 'StdioReplicaCapped', reason: 'StdioTransportCapAt1' })
    await world.reaches(SERVER, 'piped', 'Running')
    expect((await world.client.get(SERVER, world.at('piped'))).spec?.['replicas']).toBe(3)
    expect((await world.client.get(deployments, world.at('piped'))).spec?.replicas).toBe(1)
    expect(await world.proxyPods('piped')).toHaveLength(1)
    expect((await ask(await urlOf('piped'), 'echo', { message: 'x' })).isError).not.toBe(true)
  })

  test('two server pods run, and each session stays on its own', async () => {
    const [older] = await world.proxyPods('web')
    await world.edit(SERVER, 'web', { backendReplicas: 2 })
    await world.eventually('two servers are ready', async () => {
      const live = await world.serverPods('web')
      return live.length === 2 && live.every(({ status }) => status?.containerStatuses?.every(({ ready }) => ready))
    })
    await world.reaches(SERVER, 'web', 'Running')
    // The proxy is replaced by one that knows of both; sessions of one that is about to go would go with it.
    await world.eventually('only the new proxy is left', async () => {
      const { items } = await world.client.list(pods, { namespace: NAMESPACE, labelSelector: 'app=mcpserver,toolhive-name=web' })
      return items.length === 1 && items[0]?.metadata.uid !== older?.metadata.uid && items[0]?.status?.containerStatuses?.[0]?.ready
    })
    const instances = await Promise.all(
      (await world.serverPods('web')).map(async ({ status }) => await instanceAt(`http://${status?.podIP}:8080/mcp`)),
    )
    expect(new Set(instances).size).toBe(2)
    const url = await urlOf('web')
    await using sessions = new AsyncDisposableStack()
    const clients = await Promise.all(Array.from({ length: 6 }, async () => sessions.use(await connect('v1', url))))
    const askAll = async () => await Promise.all(clients.map(async (client) => (await whoAmI(client)).instance))
    const before = await askAll()
    for (const instance of before) expect(instances).toContain(instance)
    for (let round = 0; round < 10; round++) expect(await askAll()).toEqual(before)
  })

  test('a deleted server takes all its objects and processes along', async () => {
    const running = processesOf(platform)
    expect(running.length).toBeGreaterThan(0)
    const standing = [...first, ...['operator', 'apps-registry-src-main'].flatMap((part) => commandsWith(part).map(({ pid }) => pid))]
    for (const name of ['piped', 'web'])
      if (kubectlMissing() === undefined) await kubectl(platform, 'delete', 'mcpserver', name, '-n', NAMESPACE)
      else await world.client.delete(SERVER, world.at(name))
    await world.eventually('all children are gone', async () => {
      const left = (await namesOfAll(world)).filter((name) => !empty.includes(name))
      return left.length === 0 || Promise.reject(new Error(`left: ${left.join(', ')}`))
    })
    // Only the operator and the registry are left, with their guards.
    const others = processesOf(platform).filter(({ pid }) => !standing.includes(pid))
    await allGone([...others, ...running.filter(({ pid }) => !standing.includes(pid))])
  })

  async function scale(name: string, replicas: number): Promise<void> {
    if (kubectlMissing() === undefined)
      expect(await kubectl(platform, 'scale', 'mcpserver', name, `--replicas=${replicas}`, '-n', NAMESPACE)).toMatch(/ scaled$/m)
    else await world.client.patch(SERVER, world.at(name), { kind: 'merge', body: { spec: { replicas } } }, { subresource: 'scale' })
  }
})

async function instanceAt(url: string): Promise<string> {
  await using client = await connect('v1', url)
  return (await whoAmI(client)).instance
}

function scaledBy(): string {
  return kubectlMissing() === undefined ? 'kubectl scale' : 'no kubectl here, so by the scale subresource'
}

async function namesOfAll({ client, namespace }: World): Promise<string[]> {
  const lists = await Promise.all(CHILDREN.map(async (type) => (await client.list(type, { namespace })).items))
  return lists.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`)
}
