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
      observedGeneration: 1,
      conditions: [{ type: 'Ready', status: 'False', reason: 'WriteRefused', message }],
    })
    expect(cluster.writes).toEqual([{ plural: 'mcpservers', name: 'web', subresource: 'status' }])
    expect(cluster.events).toMatchObject([{ type: 'Warning', reason: 'WriteRefused', name: 'web' }])
  })

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
