import { isListed } from '@thv/catalog/images/image-hashes'
import { type ConfigMap, type Pod, setControllerReference } from '@thv/kube'
import { normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import { imageListsOf } from '../../../enforcement/image-lists.ts'
import { EnforcedImages } from './enforced-images.ts'
import { IMAGES, type ImagesReport } from './images-report.ts'

const key = { namespace: 'team', name: 'demo' }
const { signal } = new AbortController()
const pods = [{ metadata: { name: 'p' } } as Pod]

function setUp(spec: MCPRegistry['spec']) {
  const registry = { metadata: { ...key, uid: 'uid-demo' }, spec: { enforceServers: true, ...spec } } as MCPRegistry
  const lists = imageListsOf({})
  const woken: string[] = []
  lists.source((changed) => [changed]).subscribe(({ name }) => woken.push(name))
  const answers: (ImagesReport | undefined)[] = []
  const images = new EnforcedImages({ lists, reports: { read: async () => answers.shift() } })
  const update = (maps: readonly ConfigMap[] = [], off = false) =>
    images.update({
      registry,
      key,
      spec: normaliseMcpRegistry(off ? { spec: { ...registry.spec, enforceServers: false } } : registry).spec,
      maps,
      pods,
      signal,
    })
  const map = (component: string, version: string, file: unknown) =>
    setControllerReference(
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { ...key, name: 'm', uid: 'm', resourceVersion: version, labels: { 'app.kubernetes.io/component': component } },
        data: { 'registry.json': JSON.stringify(file) },
      } as ConfigMap,
      { object: registry, type: mcpRegistryType },
    )
  return { woken, answers, update, map, listed: () => lists.get(key)?.hashes ?? new Set<string>() }
}

describe('EnforcedImages', () => {
  it('takes the images of the source shape from its storage, those of groups too', async () => {
    const { update, map, listed, woken } = setUp({ source: { configMap: { name: 'c' } } })
    expect(await update()).toMatchObject({ conditions: [{ type: 'ServersEnforced', status: 'Unknown', reason: 'ImagesUnknown' }] })
    const file = { servers: { a: { image: 'a:1' } }, groups: [{ name: 'g', servers: { b: { image: 'b:1' } } }] }
    expect(await update([map('registry-storage', '1', file)])).toMatchObject({
      conditions: [{ status: 'True', reason: 'ImagesListed' }],
      pending: false,
    })
    expect(['a:1', 'b:1', 'c:1'].map((image) => isListed(image, listed()))).toEqual([true, true, false])
    await update([map('registry-storage', '2', { servers: {} })])
    expect(isListed('a:1', listed())).toBe(false)
    expect(woken).toEqual(['demo', 'demo'])
  })

  it('asks the server for the other shapes, and keeps the last list while none answers', async () => {
    const { update, map, listed, answers, woken } = setUp({ registries: [{ name: 'a', configMapSelector: { matchLabels: { a: 'b' } } }] })
    const report = (synced: boolean, ...images: string[]) => ({ synced, images: new Set(images) })
    answers.push(undefined, report(false, 'x'), report(true, 'x'), undefined, report(true, 'x'))
    expect(await update()).toMatchObject({ pending: true, conditions: [{ status: 'Unknown' }] })
    expect(await update()).toMatchObject({ pending: true })
    expect(await update()).toMatchObject({ pending: false, conditions: [{ status: 'True' }] })
    expect(listed()).toEqual(new Set(['x']))
    expect(await update()).toMatchObject({ pending: false, conditions: [{ status: 'True' }] })
    await update([map('registry-aggregate', '1', { servers: {}, groups: [{ name: 'g', servers: { b: { image: 'b:1' } } }] })])
    expect(isListed('b:1', listed())).toBe(true)
    expect(woken).toEqual(['demo', 'demo'])
    expect(await update([], true)).toEqual({ conditions: [], pending: false })
    expect(listed().size).toBe(0)
  })
})

describe('the images report', () => {
  it.each(['', '[]', '{"images":1}'])('%j is none', (text) => {
    expect(IMAGES.read(text)).toBeUndefined()
  })

  it('takes texts only, and is synced only when it says so', () => {
    expect(IMAGES.read('{"images":["a",7]}')).toEqual({ synced: false, images: new Set(['a']) })
  })
})
