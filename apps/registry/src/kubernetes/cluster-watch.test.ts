import { noKnownServers } from '@thv/catalog/discover/entry/known-servers'
import { annotation } from '@thv/catalog/discover/testing/export-world'
import { systemClock } from '@thv/kernel/clock'
import type { KubeClient, KubeObject, ListOptions, ResourceType } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { ClusterWatch } from './cluster-watch.ts'

const { signal } = new AbortController()

/** A cluster of routes, whose watches bring nothing. Tells the namespaces whose Gateways are listed. */
function clusterOf(routes: readonly KubeObject[]) {
  const gatewaysOf = new Set<string>()
  const page = ({ plural }: ResourceType, { namespace = '' }: ListOptions) => {
    if (plural === 'gateways') gatewaysOf.add(namespace)
    const items = plural === 'httproutes' ? routes.filter(({ metadata }) => metadata.namespace === namespace) : []
    return { metadata: { resourceVersion: '1' }, items }
  }
  const client = {
    list: async (type: ResourceType, options: ListOptions) => page(type, options),
    async *listPages(type: ResourceType, options: ListOptions) {
      yield page(type, options)
    },
    async *watch(_: ResourceType, { signal: stop }: ListOptions) {
      await new Promise<void>((resolve) => {
        if (stop?.aborted) resolve()
        else stop?.addEventListener('abort', () => resolve(), { once: true })
      })
    },
    close: async () => {},
  }
  return { gatewaysOf, connect: async () => client as unknown as KubeClient }
}

const route = (namespace: string, name: string, parents: readonly object[]): KubeObject =>
  ({
    metadata: { namespace, name, uid: name, annotations: { [annotation('registry-export')]: 'true' } },
    spec: { parentRefs: parents, rules: [{ backendRefs: [{ name: 'none', port: 8080 }] }] },
  }) as KubeObject
/** Gateways of 32 namespaces that do not exist. */
const strangers = (index: number) => Array.from({ length: 32 }, (_, at) => ({ name: 'g', namespace: `nowhere-${index}-${at}` }))

async function read(namespaces: string[], routes: readonly KubeObject[]) {
  const { gatewaysOf, connect } = clusterOf(routes)
  const watch = new ClusterWatch({
    source: { namespaces },
    exportOptions: { mode: 'server', crossNamespaceGateway: 'accepted' },
    intervalMs: 3_600_000,
    debounceMs: 100,
    clock: systemClock,
    random: Math.random,
    connect,
    onChange: () => {},
  })
  const { notes } = await watch.read(noKnownServers, { signal })
  await watch.close()
  return { gatewaysOf, isLimited: notes.some((note) => note.includes('more than 64 namespaces')) }
}

describe('ClusterWatch', () => {
  it('follows Gateways of its own namespaces, however many others its routes name', async () => {
    const hostile = [1, 2, 3].map((index) => route('a', `r-${index}`, strangers(index)))
    const { gatewaysOf, isLimited } = await read(['a', 'b'], [...hostile, route('b', 'honest', [{ name: 'edge' }])])
    expect(gatewaysOf).toContain('b')
    expect(gatewaysOf.size).toBe(65)
    expect(isLimited).toBe(true)
  })

  it('says nothing of the limit when nothing is left out', async () => {
    const routes = [1, 2].map((index) => route('a', `r-${index}`, strangers(index)))
    const { gatewaysOf, isLimited } = await read(['a', 'b'], [...routes, route('b', 'honest', [{ name: 'edge' }])])
    expect(gatewaysOf.size).toBe(65)
    expect(isLimited).toBe(false)
  })
})
