import { type Controller, createController, done, type KubeObject } from '@thv/kube'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createOperatorCaches, type OperatorCaches } from '../../caches/operator-caches.ts'
import { WatchedApi } from '../../testing/watched-api.ts'
import { CONTROLLERS } from '../controllers.ts'
import { controller } from './controller.ts'

const COUNT = 200
const named = (name: string, more: object = {}) => ({ metadata: { namespace: 'team', name }, ...more }) as KubeObject
const range = Array.from({ length: COUNT }, (_, index) => index)

/* Each group has two virtual servers, so that 200 of them have 100 groups. What they name is their group's own. */
const groupOf = (index: number) => index % (COUNT / 2)
const virtual = (index: number) => {
  const of = groupOf(index)
  return named(`v${index}`, {
    spec: {
      groupRef: { name: `g${of}` },
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline', default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: `auth${of}` } } },
      sessionStorage: {
        provider: 'redis',
        address: 'redis:6379',
        passwordRef: { name: `redis${of}`, key: 'password' },
        tls: { enabled: true, caBundleRef: { configMapRef: { name: `redis-ca${of}`, key: 'ca.crt' } } },
      },
      compositeToolRefs: [{ name: `definition${of}` }],
      config: {
        aggregation: { tools: [{ workload: `server${of}`, toolConfigRef: { name: `tools${of}` } }] },
        telemetry: {
          endpoint: 'otel:4318',
          metricsEnabled: true,
          sensitiveHeaders: [{ name: 'X-Key', secretKeyRef: { name: `collector${of}`, key: 'key' } }],
        },
      },
    },
  })
}

/** By kind: the object of one group, and the same one changed. */
const OBJECTS: Readonly<Record<string, (of: number, value: number) => [plural: string, object: KubeObject]>> = {
  'an MCPServer of the group': (of, value) => [
    'mcpservers',
    named(`server${of}`, { spec: { image: 'i', proxyPort: 8080 + value, groupRef: { name: `g${of}` } } }),
  ],
  'an MCPRemoteProxy of the group': (of, value) => [
    'mcpremoteproxies',
    named(`proxy${of}`, { spec: { remoteUrl: `https://r.example.com/${value}`, groupRef: { name: `g${of}` } } }),
  ],
  'an MCPServerEntry of the group': (of, value) => ['mcpserverentries', entry(of, value)],
  'the MCPGroup': (of, value) => ['mcpgroups', named(`g${of}`, { status: { phase: value === 0 ? 'Pending' : 'Ready' } })],
  'an MCPToolConfig': (of, value) => ['mcptoolconfigs', named(`tools${of}`, { spec: { toolsFilter: [`tool${value}`] } })],
  'an MCPExternalAuthConfig of the spec': (of, value) => ['mcpexternalauthconfigs', bearer(`auth${of}`, value)],
  'an MCPExternalAuthConfig of an entry': (of, value) => ['mcpexternalauthconfigs', bearer(`entry-auth${of}`, value)],
  'a composite definition': (of, value) => [
    'virtualmcpcompositetooldefinitions',
    named(`definition${of}`, { spec: { name: 'a', description: `d${value}`, steps: [{ id: 'one', tool: 'x.y' }] } }),
  ],
  'the Secret of the Redis': (of, value) => ['secrets', secret(`redis${of}`, value)],
  'the Secret of an auth config of the spec': (of, value) => ['secrets', secret(`secret-auth${of}`, value)],
  'the Secret of an auth config of an entry': (of, value) => ['secrets', secret(`secret-entry-auth${of}`, value)],
  'the Secret of a header of an entry': (of, value) => ['secrets', secret(`header${of}`, value)],
  'the CA bundle of the Redis': (of, value) => ['configmaps', named(`redis-ca${of}`, { data: { 'ca.crt': `${value}` } })],
  'the CA bundle of an entry': (of, value) => ['configmaps', named(`ca${of}`, { data: { 'ca.crt': `${value}` } })],
  'the Secret of a header for the collector': (of, value) => ['secrets', secret(`collector${of}`, value)],
}

function entry(of: number, value: number): KubeObject {
  const valueSecretRef = { name: `header${of}`, key: 'value' }
  return named(`entry${of}`, {
    spec: {
      remoteUrl: `https://r.example.com/${value}`,
      groupRef: { name: `g${of}` },
      externalAuthConfigRef: { name: `entry-auth${of}` },
      caBundleRef: { configMapRef: { name: `ca${of}`, key: 'ca.crt' } },
      headerForward: { addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef }] },
    },
  })
}

function bearer(name: string, value: number): KubeObject {
  const tokenSecretRef = { name: `secret-${name}`, key: `key${value}` }
  return named(name, { spec: { type: 'bearerToken', bearerToken: { tokenSecretRef } } })
}

function secret(name: string, value: number): KubeObject {
  return named(name, { data: { password: Buffer.from(`${value}`).toString('base64') } })
}

describe('the VirtualMCPServer controller, with 200 virtual servers', () => {
  let api: WatchedApi
  let caches: OperatorCaches
  let running: Controller
  let ended: Promise<void>
  const stop = { signal: new AbortController() }
  /** Holds reconciles up while it is open. */
  let gate: Promise<void> | undefined
  /** Names of virtual servers, once for each reconcile that has ended. */
  let reconciled: string[]

  beforeEach(async () => {
    api = new WatchedApi()
    for (const index of range) api.put('virtualmcpservers', virtual(index))
    for (const of of range.slice(0, COUNT / 2)) for (const make of Object.values(OBJECTS)) api.put(...make(of, 0))
    caches = createOperatorCaches({ client: api.client, specs: CONTROLLERS.map(({ cache }) => cache), namespaces: undefined })
    await caches.shared.waitForSync(AbortSignal.timeout(60_000))
    reconciled = []
    running = createController({
      ...{ name: controller.name, concurrency: controller.concurrency, sources: controller.sources(caches) },
      reconcile: async () => {
        await gate
        return done
      },
      onReconcile: ({ key, result }) => void (result === 'done' && reconciled.push(key.name)),
    })
    stop.signal = new AbortController()
    ended = running.run(stop.signal.signal)
    await vi.waitFor(() => expect(new Set(reconciled).size).toBe(COUNT), 20_000)
    await settled()
  })
  afterEach(async () => {
    stop.signal.abort()
    await ended
    await caches.shared.close()
  })

  /** Nothing waits any more, and nothing is under way. */
  const settled = () =>
    vi.waitFor(() => expect([running.stats.depth, running.stats.delayed, running.stats.active]).toEqual([0, 0, 0]), 20_000)

  it('[002-027] [004-100] reconciles exactly the two users of a changed object, whatever its kind, and looks at no other', async () => {
    const scans = caches.all.map((cache) => vi.spyOn(cache, 'list'))
    for (const [what, make] of Object.entries(OBJECTS)) {
      reconciled.length = 0
      api.put(...make(7, 1))
      // The second change comes after the first on the same watch, so nothing of the first is still to come then.
      api.put(...make(3, 1))
      await vi.waitFor(() => expect(reconciled, what).toContain('v103'), 10_000)
      await settled()
      expect(reconciled.toSorted(), what).toEqual(['v103', 'v107', 'v3', 'v7'])
    }
    expect(scans.flatMap(({ mock }) => mock.calls)).toEqual([])
  })

  it('reconciles each user once more for a hundred changes that come while it is at work', async () => {
    const change = (of: number, value: number) => {
      const config = OBJECTS['an MCPToolConfig']
      if (config) api.put(...config(of, value))
    }
    const opened = Promise.withResolvers<void>()
    gate = opened.promise
    reconciled.length = 0
    change(7, 1)
    await vi.waitFor(() => expect(running.stats.active).toBe(2), 10_000)
    for (let value = 2; value <= 100; value++) change(7, value)
    // Comes last on the same watch.
    change(3, 1)
    await vi.waitFor(() => expect(running.stats.active).toBe(4), 10_000)
    opened.resolve()
    await settled()
    expect(reconciled.toSorted()).toEqual(['v103', 'v107', 'v107', 'v3', 'v7', 'v7'])
  })

  it('reconciles no virtual server for the status of an object that it names', async () => {
    const servers = OBJECTS['an MCPServer of the group']
    const [plural, server] = servers?.(7, 0) ?? ['', named('')]
    reconciled.length = 0
    api.put(plural, { ...server, metadata: { ...server.metadata, generation: 1 }, status: { readyReplicas: 1 } } as KubeObject)
    if (servers) api.put(...servers(9, 1))
    await vi.waitFor(() => expect(reconciled).toContain('v109'), 10_000)
    await settled()
    expect(reconciled).not.toContain('v7')
  })
})
