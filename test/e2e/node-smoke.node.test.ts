import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { apiRequest, request } from '@thv/testkit/cluster/http-request'
import { describeNode, sharedNode } from '@thv/testkit/cluster/node/test-node'
import { testNamespace } from '@thv/testkit/cluster/test-cluster'
import { beforeAll, expect, test, vi } from 'vitest'
import { writeImage } from '../../scripts/image.ts'

/* That the harness's node is a node: what the stories of this folder rely on, each with a test of its own. */

const patience = { timeout: 90_000, interval: 300 }
const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

describeNode('a real node', () => {
  let namespace: string
  beforeAll(async () => {
    namespace = await testNamespace('smoke', sharedNode())
  })

  test('is ready, and runs our image as the restricted user with a read-only root', async () => {
    const script = `const fs = require('node:fs'); const os = require('node:os')
      let root = 'writable'; try { fs.writeFileSync('/app/x', '') } catch (error) { root = error.code }
      fs.writeFileSync('/tmp/x', 'scratch')
      const status = fs.readFileSync('/proc/self/status', 'utf8')
      const environ = fs.readFileSync('/proc/1/environ', 'utf8').split('\\0')
      console.log(JSON.stringify({ uid: process.getuid(), gid: process.getgid(), root, scratch: fs.readFileSync('/tmp/x', 'utf8'),
        caps: /CapEff:\\s*(\\w+)/.exec(status)[1], seccomp: /Seccomp:\\s*(\\d)/.exec(status)[1], host: os.hostname(),
        memory: environ.filter((variable) => /^(NODE_OPTIONS|MALLOC_)/.test(variable)).sort() }))`
    await createPod('restricted', {
      image: sharedNode().images.apps,
      command: ['node', '-e', script],
      securityContext: restricted,
      volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
    })
    await vi.waitFor(async () => expect(await phase('restricted')).toBe('Succeeded'), patience)
    expect(JSON.parse(await kubectl('logs', 'restricted'))).toEqual({
      uid: 1000,
      gid: 1000,
      root: 'EROFS',
      scratch: 'scratch',
      caps: '0000000000000000',
      seccomp: '2',
      host: 'restricted',
      memory: Object.entries(MEMORY_SETTINGS)
        .map(([name, value]) => `${name}=${value}`)
        .sort(),
    })
  })

  test('our image is the same whenever it is written', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'thv-image-'))
    try {
      const [one, two] = [join(folder, 'one.tar'), join(folder, 'two.tar')]
      for (const output of [one, two]) await writeImage({ output })
      expect(await digest(one)).toBe(await digest(two))
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test.for(['thv', 'thv-operator', 'thv-proxyrunner', 'thv-registry-api'])('our image has %s, which explains itself', async (program) => {
    await createPod(program, { image: sharedNode().images.apps, command: [program, '--help'], securityContext: restricted })
    await vi.waitFor(async () => expect(await phase(program)).toMatch(/Succeeded|Failed/), patience)
    const output = await kubectl('logs', program)
    expect(await phase(program), output).toBe('Succeeded')
    expect(output).toContain('Usage:')
  })

  test('a Service is reached from the host, by its address and by the name that pods use', async () => {
    await createPod('web', {
      image: sharedNode().images.fixture,
      env: [
        { name: 'MCP_TRANSPORT', value: 'streamable-http' },
        { name: 'MCP_PORT', value: '8080' },
        { name: 'MCP_HOST', value: '0.0.0.0' },
      ],
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
      securityContext: restricted,
    })
    const service = { metadata: { name: 'web' }, spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] } }
    const made = await create(`/api/v1/namespaces/${namespace}/services`, service)
    const { clusterIP } = (made as { spec: { clusterIP: string } }).spec
    await vi.waitFor(async () => expect((await callMcp(`http://${clusterIP}/mcp`)).status).toBe(200), patience)

    const script = `fetch('http://web.${namespace}.svc.cluster.local/mcp', { method: 'POST', body: process.argv[1], headers:
      { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } }).then(async (answer) => console.log(answer.status))`
    await createPod('client', { image: sharedNode().images.apps, command: ['node', '-e', script, JSON.stringify(initialize)] })
    await vi.waitFor(async () => expect(await phase('client')).toBe('Succeeded'), patience)
    expect((await kubectl('logs', 'client')).trim()).toBe('200')
  })

  test('a pod reaches the host and the API server with its account, and no name of the outside', async () => {
    const { hostAddress, images } = sharedNode()
    const server = createServer((_, response) => response.end('from the host'))
    await new Promise<void>((resolve) => server.listen(0, hostAddress, resolve))
    const { port } = server.address() as { port: number }
    const script = `const fs = require('node:fs'); const account = '/var/run/secrets/kubernetes.io/serviceaccount/'
      const https = require('node:https'); const dns = require('node:dns/promises')
      const api = () => new Promise((resolve, reject) => https.get('https://kubernetes.default.svc/version',
        { ca: fs.readFileSync(account + 'ca.crt'), headers: { authorization: 'Bearer ' + fs.readFileSync(account + 'token') } },
        (answer) => resolve(answer.resume().statusCode)).on('error', reject))
      const find = () => dns.lookup('example.com').then(() => 'found', (error) => (error.code === 'EAI_AGAIN' ? find() : error.code))
      Promise.all([fetch('http://${hostAddress}:${port}').then((answer) => answer.text()), api(), find()]).then((all) => console.log(JSON.stringify(all))).finally(() => process.exit())`
    try {
      await createPod('caller', { image: images.apps, command: ['node', '-e', script] })
      await vi.waitFor(async () => expect(await phase('caller')).toMatch(/Succeeded|Failed/), patience)
      expect(JSON.parse(await kubectl('logs', 'caller'))).toEqual(['from the host', 200, 'ENOTFOUND'])
    } finally {
      server.close()
    }
  })

  test('attach reaches the standard input of a container', async () => {
    const container = {
      image: sharedNode().images.fixture,
      env: [{ name: 'MCP_TRANSPORT', value: 'stdio' }],
      stdin: true,
      securityContext: restricted,
    }
    await createPod('pipe', container)
    await vi.waitFor(async () => expect(await phase('pipe')).toBe('Running'), patience)
    const { kubectlPath, kubeconfigPath } = sharedNode()
    const attach = spawn(kubectlPath, ['--kubeconfig', kubeconfigPath, '-n', namespace, 'attach', '-i', 'pipe', '--quiet'])
    try {
      const line = new Promise<string>((resolve) => createInterface({ input: attach.stdout }).once('line', resolve))
      attach.stdin.write(`${JSON.stringify(initialize)}\n`)
      expect(JSON.parse(await line)).toMatchObject({ id: 1, result: { serverInfo: { name: 'mcp-fixture' } } })
    } finally {
      attach.kill('SIGKILL')
    }
  })

  test('a container that crashes comes back soon, and a deleted pod goes', async () => {
    const script = `setTimeout(() => process.exit(3), 500)`
    await createPod('crasher', { image: sharedNode().images.apps, command: ['node', '-e', script] }, 'Always')
    await vi.waitFor(async () => {
      const { status } = (await get(`/api/v1/namespaces/${namespace}/pods/crasher`)).json<Pod>()
      expect(status?.containerStatuses?.[0]?.restartCount).toBeGreaterThan(1)
    }, patience)
    await apiRequest(sharedNode(), `/api/v1/namespaces/${namespace}/pods/crasher`, { method: 'DELETE' })
    await vi.waitFor(async () => expect((await get(`/api/v1/namespaces/${namespace}/pods/crasher`)).status).toBe(404), patience)
  })

  async function createPod(name: string, container: object, restartPolicy = 'Never'): Promise<void> {
    await create(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name, labels: { app: name } },
      spec: {
        restartPolicy,
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', ...container }],
        volumes: [{ name: 'tmp', emptyDir: {} }],
      },
    })
  }

  async function phase(pod: string): Promise<string | undefined> {
    return (await get(`/api/v1/namespaces/${namespace}/pods/${pod}`)).json<Pod>().status?.phase
  }

  async function kubectl(...args: string[]): Promise<string> {
    const { kubectlPath, kubeconfigPath } = sharedNode()
    return (await promisify(execFile)(kubectlPath, ['--kubeconfig', kubeconfigPath, '-n', namespace, ...args])).stdout
  }
})

interface Pod {
  status?: { phase?: string; containerStatuses?: { restartCount: number }[] }
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'smoke', version: '1' } },
}

function callMcp(url: string) {
  return request(url, { method: 'POST', body: initialize, headers: { accept: 'application/json, text/event-stream' }, limitMs: 15_000 })
}

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

function get(path: string) {
  return apiRequest(sharedNode(), path)
}

async function create(path: string, body: object): Promise<unknown> {
  const answer = await apiRequest(sharedNode(), path, { method: 'POST', body })
  expect(answer.status, answer.text).toBe(201)
  return answer.json()
}
