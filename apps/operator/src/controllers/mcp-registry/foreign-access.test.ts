import { TestClock } from '@thv/kernel/clock'
import { formatKey, KubeApiError, type KubeObject, keyOf, type ObjectKey, type ResourceType } from '@thv/kube'
import { MCP_REGISTRY_FINALIZER } from '@thv/resources/kinds/mcp-registry/constants'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { createLogger } from '@thv/telemetry/log'
import { describe, expect, it } from 'vitest'
import { createChildApplier } from '../../deployment/child-applier.ts'
import type { Env } from '../../environment.ts'
import type { ExportScope } from '../../export/export-scope.ts'
import { planFacts } from '../../testing/fixture-namespace.ts'
import { ensureForeignAccess, removeForeignAccess, withdrawForeignAccess } from './foreign-access.ts'
import { reconcileMcpRegistry } from './reconcile.ts'

const signal = new AbortController().signal
const NAME = 'team.demo.registry-export'
const scope = (...namespaces: string[]): ExportScope => ({ mode: 'server', namespaces, crossNamespaceGateway: 'accepted' })

/** An API server, and caches that see a change only when told to. */
function world(finalizers: string[], spec: object = { registries: [{ name: 'own', managed: {} }] }) {
  const objects = new Map<string, KubeObject>()
  let cached = new Map<string, KubeObject>()
  let version = 1
  const missing = new Set<string>()
  const idOf = ({ plural }: ResourceType, key: ObjectKey) => `${plural}:${formatKey(key)}`
  const refusal = (status: number, reason: string) =>
    new KubeApiError({ call: { verb: 'patch', target: 'objects' }, status, body: { reason } })
  const client = {
    tryGet: async (type: ResourceType, key: ObjectKey) => objects.get(idOf(type, key)),
    apply: async (type: ResourceType, object: KubeObject) => {
      if (missing.has(object.metadata.namespace ?? '')) throw refusal(404, 'NotFound')
      const made = { ...object, metadata: { ...object.metadata, uid: `uid-${++version}`, resourceVersion: `${version}` } }
      objects.set(idOf(type, keyOf(object)), made)
      return made
    },
    delete: async (type: ResourceType, key: ObjectKey) => void objects.delete(idOf(type, key)),
    patch: async (type: ResourceType, key: ObjectKey, patch: { ops: readonly { op: string; path: string; value?: unknown }[] }) => {
      const found = objects.get(idOf(type, key))
      if (found === undefined) throw refusal(404, 'NotFound')
      const added = patch.ops.flatMap(({ op, value }) => (op === 'add' ? [value] : []))
      const isFinalizer = patch.ops.some(({ path }) => path.startsWith('/metadata/finalizers'))
      const next = isFinalizer ? { ...found, metadata: { ...found.metadata, finalizers: added.flat() as string[] } } : found
      objects.set(idOf(type, key), next)
      return next
    },
  }
  const caches = {
    of: ({ type }: { type: ResourceType }) => ({
      get: (key: ObjectKey) => cached.get(idOf(type, key)),
      list: () => [...cached].filter(([id]) => id.startsWith(`${type.plural}:`)).map(([, object]) => object),
      byIndex: () => [],
    }),
  }
  const registry = {
    metadata: { name: 'demo', namespace: 'team', uid: 'uid-demo', resourceVersion: '1', generation: 1, finalizers },
    spec,
  } as unknown as MCPRegistry
  const registryId = 'mcpregistries:team/demo'
  objects.set(registryId, registry as unknown as KubeObject)
  cached.set(registryId, registry as unknown as KubeObject)
  const env = {
    client,
    caches,
    children: createChildApplier(client as never),
    events: { record: () => {} },
    settings: { ...planFacts().settings, registryExport: { namespaces: ['other', 'third'], clusterRole: undefined } },
    clock: new TestClock(0),
    log: createLogger({ level: 'error', format: 'json', write: () => {} }),
  } as unknown as Env
  return {
    env,
    work: { registry, env, signal },
    missing,
    goes: () => void objects.delete(registryId),
    catchUp: () => {
      cached = new Map(objects)
    },
    rights: () => [...objects.keys()].filter((id) => id.endsWith(NAME)).sort(),
    finalizers: () => objects.get(registryId)?.metadata.finalizers ?? [],
  }
}

const rightsIn = (namespace: string) => [`rolebindings:${namespace}/${NAME}`, `roles:${namespace}/${NAME}`]

describe('rights in other namespaces', () => {
  it('are removed also when the caches have not seen them yet', async () => {
    const { work, rights, finalizers } = world([])
    await ensureForeignAccess(work, scope('other', 'third'))
    expect(rights()).toEqual([...rightsIn('other'), ...rightsIn('third')].sort())
    expect(finalizers()).toEqual([MCP_REGISTRY_FINALIZER])
    const held = {
      ...work,
      registry: { ...work.registry, metadata: { ...work.registry.metadata, finalizers: finalizers() } } as MCPRegistry,
    }
    await ensureForeignAccess(held, scope('other'))
    expect(rights()).toEqual(rightsIn('other'))
    await removeForeignAccess(held)
    expect(rights()).toEqual([])
    expect(finalizers()).toEqual([])
  })

  it('are removed by an operator that did not make them', async () => {
    const first = world([MCP_REGISTRY_FINALIZER])
    await ensureForeignAccess(first.work, scope('other'))
    first.catchUp()
    const caches = { ...first.env.caches }
    await removeForeignAccess({ ...first.work, env: { ...first.env, caches } })
    expect(first.rights()).toEqual([])
  })

  it('of all namespaces are taken back after the administrator withdrew "*", as far as the operator still may', async () => {
    const { work, env, rights } = world([MCP_REGISTRY_FINALIZER])
    const everywhere = { ...env, settings: { ...env.settings, registryExport: { namespaces: 'all', clusterRole: 'reader' } } } as Env
    const all: ExportScope = { mode: 'server', namespaces: 'all', crossNamespaceGateway: 'accepted' }
    await ensureForeignAccess({ ...work, env: everywhere }, all)
    expect(rights()).toEqual([`clusterrolebindings:${NAME}`])
    await withdrawForeignAccess(work, undefined)
    expect(rights()).toEqual([])

    await ensureForeignAccess({ ...work, env: everywhere }, all)
    let tries = 0
    const tryGet = async () => {
      tries++
      throw new KubeApiError({ call: { verb: 'get', target: 'clusterrolebindings' }, status: 403, body: { reason: 'Forbidden' } })
    }
    const forbidden = { ...env, caches: { ...env.caches }, client: { ...env.client, tryGet } } as unknown as Env
    for (let i = 0; i < 3; i++) await withdrawForeignAccess({ ...work, env: forbidden }, undefined)
    expect(tries).toBe(1)
  })

  it('are not made for a registry that went meanwhile', async () => {
    const { work, rights, goes } = world([])
    goes()
    await ensureForeignAccess(work, scope('other'))
    expect(rights()).toEqual([])
  })

  it('are made in the others when one namespace does not exist', async () => {
    const { work, rights, missing } = world([])
    missing.add('other')
    await ensureForeignAccess(work, scope('other', 'third'))
    expect(rights()).toEqual(rightsIn('third'))
  })

  it('are only taken back while something else is wrong', async () => {
    const { work, rights } = world([MCP_REGISTRY_FINALIZER])
    await ensureForeignAccess(work, scope('other'))
    await withdrawForeignAccess(work, scope('other', 'third'))
    expect(rights()).toEqual(rightsIn('other'))
    await withdrawForeignAccess(work, scope('third'))
    expect(rights()).toEqual([])
  })

  it.each([
    ['the spec is invalid', { registries: [{ name: 'x', git: { repository: 'https://user:password@git.example/x', branch: 'main' } }] }],
    ['an object of somebody else is in the way', { registries: [{ name: 'own', managed: {} }] }],
  ])('are taken back also when %s', async (why, spec) => {
    const { env, work, rights, catchUp, finalizers } = world([MCP_REGISTRY_FINALIZER], spec)
    await ensureForeignAccess(work, scope('other'))
    if (!why.includes('invalid'))
      await env.client.apply(
        { plural: 'serviceaccounts' } as never,
        { metadata: { namespace: 'team', name: 'demo-registry-api' } },
        {} as never,
      )
    catchUp()
    await reconcileMcpRegistry({ namespace: 'team', name: 'demo' }, env, { signal, attempt: 1 })
    expect(rights()).toEqual([])
    expect(finalizers()).toEqual([])
  })
})
