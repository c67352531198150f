import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { listedHashes } from '@thv/catalog/images/image-hashes'
import { type ConfigMap, configMaps, deployments, type KubeObject, pods, type ResourceType } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'

const registryType = mcpRegistryType as unknown as ResourceType<MCPRegistry>
const serverType = mcpServerType as unknown as ResourceType<MCPServer>

describeCluster('images of MCPServers with a registry that enforces', () => {
  let operator: OperatorUnderTest

  beforeAll(async () => {
    operator = await startOperator()
  })
  afterAll(async () => await operator?.stop())

  const key = (name: string) => ({ namespace: operator.namespace, name })
  const registry = (name: string, spec: object) =>
    operator.admin.create(registryType, { metadata: key(name), spec: { enforceServers: true, ...spec } } as MCPRegistry)
  const server = (name: string, image: string, labels: Record<string, string> = {}) =>
    operator.admin.create(serverType, { metadata: { ...key(name), labels }, spec: { image, transport: 'stdio' } } as unknown as MCPServer)
  const change = (name: string, spec: object) => operator.admin.patch(serverType, key(name), { kind: 'merge', body: { spec } })
  const data = (...images: string[]) => ({
    'registry.json': JSON.stringify({ servers: Object.fromEntries(images.map((image, i) => [`s${i}`, { image }])) }),
  })
  const judged = (name: string, status: string) =>
    eventually(`ImageValidated=${status} of ${name}`, async () => {
      const found = await operator.admin.get(serverType, key(name))
      const condition = found.status?.conditions?.find(({ type }) => type === 'ImageValidated')
      if (condition?.status !== status || condition.observedGeneration !== found.metadata.generation)
        throw new Error(JSON.stringify(found.status?.conditions))
      return { ...condition, phase: found.status?.phase }
    })
  const deployment = (name: string) => operator.admin.tryGet(deployments, key(name))

  /** A second try finds what the first one made, so each has names of its own. */
  const nameMaker = () => {
    const attempt = randomBytes(3).toString('hex')
    return (name: string) => `${name}-${attempt}`
  }

  test('starts a server whose image the storage lists, holds back others, and leaves alone what runs', async () => {
    const own = nameMaker()
    const image = (name: string) => `example.com/${own(name)}:1`
    const normal = (tag: string) => `${tag}${own('web')}`
    await operator.admin.create(configMaps, { metadata: key(own('images')), data: data(image('good'), normal('')) } as ConfigMap)
    await registry(own('stored'), { source: { configMap: { name: own('images') } }, api: { enabled: false } })
    await server(own('good'), image('good'))
    await server(own('normal'), `${normal('docker.io/library/')}:latest`)
    await server(own('bad'), image('bad'))
    expect(await judged(own('good'), 'True')).toMatchObject({ reason: 'ImageValidationSuccess' })
    await judged(own('normal'), 'True')
    expect(await judged(own('bad'), 'False')).toMatchObject({ reason: 'ImageValidationFailed', phase: 'Failed' })
    const before = await eventually('the Deployment of good', () => deployment(own('good')))
    expect(await deployment(own('bad'))).toBeUndefined()

    await change(own('good'), { image: image('better') })
    expect((await judged(own('good'), 'False')).message).toContain('keeps running')
    expect((await deployment(own('good')))?.metadata.generation).toBe(before.metadata.generation)

    const body = { data: data(image('better'), image('bad')) }
    await operator.admin.patch(configMaps, key(own('images')), { kind: 'merge', body })
    await judged(own('good'), 'True')
    await judged(own('bad'), 'True')
    await eventually('the Deployment of bad', () => deployment(own('bad')))
    await judged(own('normal'), 'False')
  })

  test('asks the server of a registry with registries[] for the hashes, and starts nothing before it answers', async () => {
    const own = nameMaker()
    const image = `example.com/${own('asked')}:1`
    const enforced = (status: string) =>
      eventually(`ServersEnforced=${status}`, async () => {
        const { status: found } = await operator.admin.get(registryType, key(own('asked')))
        return found?.conditions?.find((condition) => condition.type === 'ServersEnforced' && condition.status === status)
      })
    await registry(own('asked'), { registries: [{ name: 'core', configMapRef: { name: 'core' } }] })
    await server(own('waits'), image, { 'toolhive.stacklok.io/registry-name': own('asked') })
    expect(await judged(own('waits'), 'Unknown')).toMatchObject({ reason: 'ImageValidationError' })
    expect(await deployment(own('waits'))).toBeUndefined()
    expect(await enforced('Unknown')).toMatchObject({ reason: 'ImagesUnknown' })
    const address = '127.88.77.66'
    await using answering = await internalPort(address, JSON.stringify({ synced: true, images: listedHashes(image) }))
    await readyPod(own('by-hand'), own('asked'), address)
    await judged(own('waits'), 'True')
    expect(await enforced('True')).toMatchObject({ reason: 'ImagesListed' })
    expect(answering.paths).toContain('/status/images')
    await eventually('the Deployment', () => deployment(own('waits')))
    await operator.admin.delete(registryType, key(own('asked')))
    expect((await judged(own('waits'), 'False')).message).toContain('does not exist')
    expect(await deployment(own('waits'))).toBeDefined()
  })

  /** A pod of the registry API as the kubelet would report it. */
  async function readyPod(name: string, registryName: string, podIP: string): Promise<void> {
    const labels = { toolhive: 'true', 'toolhive-name': registryName, 'app.kubernetes.io/component': 'registry-api' }
    const spec = { schedulerName: 'nobody', containers: [{ name: 'registry-api', image: 'example.com/registry:1' }] }
    await operator.admin.create(pods, { metadata: { ...key(name), labels }, spec } as unknown as KubeObject)
    const conditions = [{ type: 'Ready', status: 'True' }]
    const body = { status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }], conditions } }
    await operator.admin.patch(pods, key(name), { kind: 'merge', body }, { subresource: 'status' })
  }
})

/** Answers as the internal port of a registry server does. */
async function internalPort(address: string, images: string): Promise<AsyncDisposable & { readonly paths: string[] }> {
  const paths: string[] = []
  const server: Server = createServer((request, response) => {
    paths.push(request.url ?? '')
    response.end(request.url === '/status/images' ? images : '{"sources":[]}')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(8081, address, resolve)
  })
  return {
    paths,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
