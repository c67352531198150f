import { done, KubeApiError, type Outcome } from '@thv/kube'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { describe, expect, it } from 'vitest'
import { memoryCluster } from '../testing/memory-cluster.ts'
import { CONTROLLERS, reconcileOne } from './controllers.ts'

const refused = (reason = 'Forbidden', causes: { reason: string }[] = []) =>
  new KubeApiError({
    call: { verb: 'apply', target: 'deployments team/web', object: { kind: 'Deployment', namespace: 'team', name: 'web' } },
    status: 403,
    body: { reason, message: 'exceeded quota: small', details: { causes } },
  })

describe('a controller whose writes are refused', () => {
  const mcpServer = CONTROLLERS.find(({ name }) => name === 'mcpserver')
  if (mcpServer === undefined) throw new TypeError('no controller of MCPServers')

  function setUp(reconcile: () => Promise<Outcome>, refusedIn = mcpServer?.refusedIn) {
    const cluster = memoryCluster()
    cluster.put({
      kind: 'MCPServer',
      metadata: { name: 'web' },
      spec: { image: 'x' },
      status: { url: 'http://kept', phase: 'Running' },
    } as never)
    const spec = { ...(mcpServer as NonNullable<typeof mcpServer>), reconcile, ...(refusedIn === undefined ? {} : { refusedIn }) }
    const attempt = (count: number) =>
      reconcileOne(spec, cluster.env, {
        key: { namespace: 'team', name: 'web' },
        context: { signal: new AbortController().signal, attempt: count },
      })
    return { cluster, attempt, status: () => cluster.object<MCPServer>('MCPServer', 'web')?.status }
  }

  it('says so from the second time on, once, beside what the status said, and goes on trying', async () => {
    const { cluster, attempt, status } = setUp(() => Promise.reject(refused()))
    await expect(attempt(1)).rejects.toThrow('exceeded quota')
    expect([status()?.phase, cluster.writes]).toEqual(['Running', []])
    for (const count of [2, 3, 4]) await expect(attempt(count)).rejects.toThrow('exceeded quota')
    const message = expect.stringMatching(
      /^The API server does not let the operator write Deployment web: exceeded quota: small\. Raise the quota/,
    )
    expect(status()).toMatchObject({
      phase: 'Failed',
      message,
      url: 'http://kept',
      conditions: [
        { type: 'Ready', status: 'False', reason: 'WriteRefused', message },
        { type: 'WriteRefused', status: 'True', reason: 'WriteRefused', message },
      ],
    })
    expect(status()).not.toHaveProperty('observedGeneration')
    expect(cluster.writes).toEqual([{ plural: 'mcpservers', name: 'web', subresource: 'status' }])
    expect(cluster.events).toMatchObject([{ type: 'Warning', reason: 'WriteRefused', name: 'web' }])
  })

  it.each([
    ['mcpserver', 'MCPServer', 'web', 'Running', { app: 'mcpserver' }],
    ['mcpremoteproxy', 'MCPRemoteProxy', 'web', 'Ready', { app: 'mcpremoteproxy' }],
    ['virtualmcpserver', 'VirtualMCPServer', 'web', 'Ready', { app: 'virtualmcpserver' }],
    ['mcpregistry', 'MCPRegistry', 'web-api', 'Ready', {}],
  ])(
    'leaves the phase of a %s to its pods while they serve, and the generation to a reconcile that works',
    async (name, kind, deployment, phase, labels) => {
      const cluster = memoryCluster()
      const found = CONTROLLERS.find((each) => each.name === name)
      if (found === undefined) throw new TypeError(`no controller ${name}`)
      const stale = [
        { type: 'RegistryExport', status: 'True', reason: 'Exported', message: 'm', observedGeneration: 1, lastTransitionTime: 't' },
      ]
      cluster.put({
        kind,
        metadata: { name: 'web', uid: 'u', generation: 2 },
        spec: { image: 'x', remoteUrl: 'https://x.example', groupRef: { name: 'g' }, registries: [] },
        status: { url: 'http://kept', phase, observedGeneration: 1, conditions: stale },
      } as never)
      const pods = (ready: boolean) => {
        const owner = [{ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, name: 'web', uid: 'u', controller: true }]
        const status = ready ? { replicas: 1, readyReplicas: 1 } : { replicas: 1 }
        cluster.put({ kind: 'Deployment', metadata: { name: deployment, ownerReferences: owner }, spec: { replicas: 1 }, status } as never)
        for (const app of [labels, { app: 'web', 'toolhive-basename': 'web' }])
          cluster.put({
            kind: 'Pod',
            metadata: {
              name: `web-${'toolhive-basename' in app ? 0 : 'proxy'}`,
              labels: { ...app, toolhive: 'true', 'toolhive-name': 'web' },
            },
            spec: { containers: [] },
            status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
          } as never)
        cluster.put({ kind: 'StatefulSet', metadata: { name: 'web', ownerReferences: owner }, spec: { replicas: 1 }, status } as never)
      }
      const tried = async () => {
        const spec = { ...found, reconcile: () => Promise.reject(refused()) }
        const context = { signal: new AbortController().signal, attempt: 2 }
        await expect(reconcileOne(spec, cluster.env, { key: { namespace: 'team', name: 'web' }, context })).rejects.toThrow(
          'exceeded quota',
        )
        const { status = {} } = cluster.object<MCPServer>(kind, 'web') ?? {}
        const told = Object.fromEntries((status.conditions ?? []).map((each) => [each.type, `${each.status} ${each.observedGeneration}`]))
        return { phase: status.phase, url: status.url, observed: status.observedGeneration, ...told }
      }
      const kept = { url: 'http://kept', observed: 1, RegistryExport: 'True 1', WriteRefused: 'True 2' }
      pods(true)
      expect(await tried()).toEqual({ ...kept, phase, Ready: 'True 1' })
      expect(cluster.object<MCPServer>(kind, 'web')?.status?.message).toContain('does not let the operator write Deployment web')
      pods(false)
      expect(await tried()).toEqual({ ...kept, phase: 'Failed', Ready: 'False 2' })
      pods(true)
      expect(await tried()).toEqual({ ...kept, phase, Ready: 'True 1' })
      expect(cluster.events.map(({ reason }) => reason)).toEqual(['WriteRefused'])
    },
  )

  it('has nothing to say of another failure, nor of a namespace that goes', async () => {
    const failing = setUp(() => Promise.reject(new Error('no connection')))
    await expect(failing.attempt(9)).rejects.toThrow('no connection')
    const going = setUp(() => Promise.reject(refused('Forbidden', [{ reason: 'NamespaceTerminating' }])))
    expect(await going.attempt(9)).toBe(done)
    expect([...failing.cluster.writes, ...going.cluster.writes]).toEqual([])
  })

  it('is every one that writes objects of others, in a condition of its own kind', () => {
    const said = CONTROLLERS.map(({ name, refusedIn }) => [name, refusedIn])
    expect(Object.fromEntries(said)).toEqual({
      mcpserver: 'Ready',
      mcpremoteproxy: 'Ready',
      mcpregistry: 'Ready',
      virtualmcpserver: 'Ready',
      mcpexternalauthconfig: 'SigningKeysManaged',
      mcpgroup: undefined,
      mcptoolconfig: undefined,
      mcpserverentry: undefined,
      virtualmcpcompositetooldefinition: undefined,
    })
  })
})
