import { readFileSync } from 'node:fs'
import { noKnownServers } from '@thv/catalog/discover/entry/known-servers'
import { annotation, exportWorld } from '@thv/catalog/discover/testing/export-world'
import type { FetchContext, FetchResult } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { namesOf, testContext } from '@thv/catalog/sources/testing/fetch-context'
import { describe, expect, it } from 'vitest'
import { createKubernetesHandler } from './kubernetes-handler.ts'
import { FakeCluster } from './testing/fake-cluster.ts'

const source: SourceConfig = { name: 'live', kubernetes: { namespaces: [] }, intervalMs: 30_000 }

/** MCPServer github-mcp by a route, and MCPServer direct by its annotation. */
function cluster(): FakeCluster {
  const fake = new FakeCluster()
  const { servers, services, routes, gateways } = exportWorld()
  const direct = structuredClone(servers[0])
  direct.metadata.name = 'direct'
  direct.metadata.annotations = { [annotation('registry-export')]: 'true', [annotation('registry-url')]: 'https://d.example/' }
  const plain = structuredClone(routes[0])
  Object.assign(plain.metadata, { name: 'plain', annotations: {} })
  plain.spec.parentRefs[0].name = 'other-gateway'
  plain.spec.rules[0].backendRefs[0].name = 'other-service'
  fake.objects.push(...servers, direct, ...services, ...routes, plain, ...gateways)
  return fake
}

const handlerOf = (fake: FakeCluster) => createKubernetesHandler({ known: async () => noKnownServers, connect: fake.connect })

async function fetchFrom(fake: FakeCluster, changes: Partial<FetchContext> = {}): Promise<Extract<FetchResult, { kind: 'full' }>> {
  const result = await handlerOf(fake).fetchRegistry(source, testContext(changes))
  if (result.kind !== 'full') throw new Error('expected all entries')
  return result
}

const ROUTED = 'dev.stacklok.toolhive/mcp-servers.github-mcp@1.0.0'
const DIRECT = 'dev.stacklok.toolhive/mcp-servers.direct@1.0.0'

describe('the handler of kubernetes sources', () => {
  it('merges both methods of all namespaces into one result [001-008] [001-013]', async () => {
    expect(namesOf(await fetchFrom(cluster()))).toEqual([DIRECT, ROUTED])
  })

  it('reads the Services and Gateways of annotated routes only, one by one [000-068]', async () => {
    const fake = cluster()
    await fetchFrom(fake)
    expect(fake.calls).toEqual([
      'list mcpservers',
      'list mcpremoteproxies',
      'list virtualmcpservers',
      'list httproutes',
      'get services mcp-servers/mcp-github-mcp-proxy',
      'get gateways gateway-system/external-gateway',
    ])
  })

  it('makes entries of annotated resources with a URL without reading routes or Gateways for them [001-052]', async () => {
    const fake = cluster()
    fake.objects.splice(0, fake.objects.length, ...fake.objects.filter(({ metadata }) => metadata.name === 'direct'))
    const result = await fetchFrom(fake)
    expect(namesOf(result)).toEqual([DIRECT])
    expect(fake.calls.filter((call) => call.startsWith('get'))).toEqual([])
    fake.forbidden.add('list httproutes')
    expect(namesOf(await fetchFrom(fake))).toEqual([DIRECT])
  })

  it('takes no notice of annotations on an Ingress, and reads none [000-009] [000-132]', async () => {
    const fake = cluster()
    const before = await fetchFrom(fake)
    const annotations = { [annotation('registry-export')]: 'true', [annotation('registry-url')]: 'https://ingress.example/' }
    const rule = { http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'mcp-github-mcp-proxy' } } }] } }
    fake.objects.push({
      kind: 'Ingress',
      metadata: { namespace: 'mcp-servers', name: 'door', annotations },
      spec: { rules: [rule] },
    } as never)
    const after = await fetchFrom(fake)
    expect([after.hash, after.problems]).toEqual([before.hash, before.problems])
    expect(fake.calls.filter((call) => call.includes('ingress'))).toEqual([])
    // Neither may the operator: its role has no such right.
    const rules = readFileSync(new URL('../../../../deploy/manifests/operator.yaml', import.meta.url), 'utf8')
    expect(rules).toContain('httproutes')
    expect(rules).not.toMatch(/ingress(es|classes)/)
  })

  it('reads the configured namespaces and no others', async () => {
    const fake = cluster()
    const two = { ...source, kubernetes: { namespaces: ['a', 'mcp-servers'] } }
    expect(namesOf(await handlerOf(fake).fetchRegistry(two, testContext()))).toEqual([DIRECT, ROUTED])
    expect(fake.calls.slice(0, 2)).toEqual(['list mcpservers a', 'list mcpservers mcp-servers'])
    const none = { ...source, kubernetes: { namespaces: ['a'] } }
    expect(namesOf(await handlerOf(fake).fetchRegistry(none, testContext()))).toEqual([])
  })

  it('has the same interface as other sources; a hash and a fetch of one attempt read once [001-051]', async () => {
    const fake = cluster()
    const handler = handlerOf(fake)
    const context = testContext()
    const hash = await handler.currentHash(source, context)
    const calls = fake.calls.length
    expect(await handler.fetchRegistry(source, context)).toMatchObject({ kind: 'full', hash })
    expect(fake.calls).toHaveLength(calls)
    expect(handler.validate(source)).toEqual([])
    expect(handler.validate({ ...source, kubernetes: { labelSelector: 'a in (' } })).toEqual([
      expect.stringContaining('/kubernetes/labelSelector: label selector'),
    ])
  })

  it('has another hash whenever an entry is added, changed or removed [001-057]', async () => {
    const fake = cluster()
    const hashes = new Set([(await fetchFrom(fake)).hash])
    const direct = fake.objects.find(({ metadata }) => metadata.name === 'direct')
    if (direct?.metadata.annotations) direct.metadata.annotations[annotation('registry-url')] = 'https://e.example/'
    hashes.add((await fetchFrom(fake)).hash)
    fake.objects.splice(
      fake.objects.findIndex(({ metadata }) => metadata.name === 'direct'),
      1,
    )
    hashes.add((await fetchFrom(fake)).hash)
    expect(hashes.size).toBe(3)
  })

  it('has the same hash whatever the order of the lists [001-058]', async () => {
    const fake = cluster()
    const { hash } = await fetchFrom(fake)
    fake.objects.reverse()
    expect((await fetchFrom(fake)).hash).toBe(hash)
  })

  it('works without the Gateway API, with one warning [000-104] [001-033]', async () => {
    const fake = cluster()
    for (const plural of ['httproutes', 'gateways', 'referencegrants']) fake.absent.add(plural)
    const warnings: string[] = []
    const first = await fetchFrom(fake, { warn: (text) => warnings.push(text) })
    expect(namesOf(first)).toEqual([DIRECT])
    await fetchFrom(fake, { warn: (text) => warnings.push(text), state: first.state })
    expect(warnings).toEqual(['the cluster has no kind HTTPRoute; routes are not exported'])
  })

  it('takes missing kinds of ToolHive as empty lists, with one warning each [001-056] [001-117]', async () => {
    const fake = cluster()
    for (const plural of ['mcpservers', 'mcpremoteproxies', 'virtualmcpservers']) fake.absent.add(plural)
    const warnings: string[] = []
    const result = await fetchFrom(fake, { warn: (text) => warnings.push(text) })
    expect(result.entries).toEqual([])
    expect(warnings.slice(0, 3)).toEqual([
      'the cluster has no kind MCPServer',
      'the cluster has no kind MCPRemoteProxy',
      'the cluster has no kind VirtualMCPServer',
    ])
  })

  it('asks an older version where the newer one is not served', async () => {
    const fake = cluster()
    fake.absent.add('mcpservers@v1beta1')
    expect(namesOf(await fetchFrom(fake))).toEqual([DIRECT, ROUTED])
  })

  it('fails where resources may not be listed', async () => {
    const fake = cluster()
    fake.forbidden.add('list mcpremoteproxies')
    await expect(fetchFrom(fake)).rejects.toThrow('mcpremoteproxies are forbidden')
  })

  it('leaves routes out where they never could be listed, and fails where they could', async () => {
    const fake = cluster()
    const before = await fetchFrom(fake)
    fake.forbidden.add('list httproutes')
    const warnings: string[] = []
    expect(namesOf(await fetchFrom(fake, { warn: (text) => warnings.push(text) }))).toEqual([DIRECT])
    expect(warnings[0]).toContain('routes are not exported')
    await expect(fetchFrom(fake, { state: before.state })).rejects.toThrow('they could be listed before')
  })

  it('leaves out the routes of a Gateway that may not be read, and nothing else', async () => {
    const fake = cluster()
    fake.forbidden.add('get gateways')
    const result = await fetchFrom(fake)
    expect(namesOf(result)).toEqual([DIRECT])
    expect(result.problems).toEqual([
      expect.objectContaining({
        entry: 'HTTPRoute mcp-servers/r1',
        message: expect.stringContaining('GatewayNotReadable'),
        severity: 'dropped',
      }),
    ])
  })

  it('reads grants only where a route refers to another namespace and needs one', async () => {
    const fake = cluster()
    const strict = { ...source, kubernetes: { crossNamespaceGateway: 'referenceGrant' as const } }
    expect(namesOf(await handlerOf(fake).fetchRegistry(strict, testContext()))).toEqual([DIRECT])
    expect(fake.calls).toContain('list referencegrants gateway-system')
    fake.objects.push(...exportWorld().grants)
    expect(namesOf(await handlerOf(fake).fetchRegistry(strict, testContext()))).toEqual([DIRECT, ROUTED])
  })

  it('passes the claims of an entry on, and says that others have none', async () => {
    const fake = cluster()
    const direct = fake.objects.find(({ metadata }) => metadata.name === 'direct')
    if (direct?.metadata.annotations) direct.metadata.annotations[annotation('authz-claims')] = '{"team":"a"}'
    expect((await fetchFrom(fake)).entries.map(({ claims }) => claims)).toEqual([{ team: 'a' }, null])
  })
})
