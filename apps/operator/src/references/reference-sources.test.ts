import type { KubeObject } from '@thv/kube'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createOperatorCaches, type OperatorCaches } from '../caches/operator-caches.ts'
import { CONTROLLERS } from '../controllers/controllers.ts'
import { WatchedApi } from '../testing/watched-api.ts'

const named = (name: string, more: object = {}) => ({ metadata: { namespace: 'team', name }, ...more }) as KubeObject
const bundle = (of: string) => ({ configMapRef: { name: `bundle-${of}`, key: 'ca.crt' } })
const header = (of: string) => ({
  addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: `header-${of}`, key: 'password' } }],
})
const toCollector = (of: string) => ({
  openTelemetry: { endpoint: 'https://otel:4318', metrics: { enabled: true }, caBundleRef: bundle(of) },
})

/** Referrers by plural. Each names shared objects of its own `of`; a second one of each kind names others. */
const REFERRERS: Readonly<Record<string, (of: string) => object>> = {
  mcpservers: (of) => ({
    ...{ image: 'i', groupRef: { name: `group-${of}` }, toolConfigRef: { name: `tools-${of}` } },
    ...{ externalAuthConfigRef: { name: `auth-${of}` }, telemetry: toCollector(of), secrets: [{ name: `header-${of}`, key: 'password' }] },
  }),
  mcpremoteproxies: (of) => ({
    ...{ remoteUrl: 'https://r.example.com', groupRef: { name: `group-${of}` }, toolConfigRef: { name: `tools-${of}` } },
    ...{ externalAuthConfigRef: { name: `auth-${of}` }, caBundleRef: bundle(of), headerForward: header(of) },
  }),
  mcpserverentries: (of) => ({
    ...{ remoteUrl: 'https://r.example.com', transport: 'sse', groupRef: { name: `group-${of}` } },
    ...{ externalAuthConfigRef: { name: `auth-${of}` }, caBundleRef: bundle(of), headerForward: header(of) },
  }),
  virtualmcpservers: (of) => ({
    ...{ groupRef: { name: `group-${of}` }, incomingAuth: { type: 'anonymous' } },
    outgoingAuth: { source: 'inline', default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: `auth-${of}` } } },
    sessionStorage: {
      ...{ provider: 'redis', address: 'redis:6379', passwordRef: { name: `header-${of}`, key: 'password' } },
      tls: { enabled: true, caBundleRef: bundle(of) },
    },
    config: { aggregation: { tools: [{ workload: 'a', toolConfigRef: { name: `tools-${of}` } }] } },
  }),
}

/** The shared objects, in two states. */
const SHARED: readonly (readonly [kind: string, make: (of: string, value: number) => [plural: string, object: KubeObject]])[] = [
  ['an MCPGroup', (of, value) => ['mcpgroups', named(`group-${of}`, { status: { phase: value === 0 ? 'Pending' : 'Ready' } })]],
  ['an MCPToolConfig', (of, value) => ['mcptoolconfigs', named(`tools-${of}`, { spec: { toolsFilter: [`tool${value}`] } })]],
  ['an MCPExternalAuthConfig', (of, value) => ['mcpexternalauthconfigs', bearer(of, value)]],
  ['the Secret of an MCPExternalAuthConfig', (of, value) => ['secrets', secret(`token-${of}`, value)]],
  ['a Secret', (of, value) => ['secrets', secret(`header-${of}`, value)]],
  ['a CA bundle', (of, value) => ['configmaps', named(`bundle-${of}`, { data: { 'ca.crt': `${value}` } })]],
]

function bearer(of: string, value: number): KubeObject {
  const tokenSecretRef = { name: `token-${of}`, key: `key${value}` }
  return named(`auth-${of}`, { spec: { type: 'bearerToken', bearerToken: { tokenSecretRef } } })
}

function secret(name: string, value: number): KubeObject {
  return named(name, { data: { password: Buffer.from(`${value}`).toString('base64') } })
}

/** Entries have no tool config. */
const names = (plural: string, shared: string) => plural !== 'mcpserverentries' || shared !== 'an MCPToolConfig'

describe('a change of a shared object', () => {
  let api: WatchedApi
  let caches: OperatorCaches
  beforeEach(async () => {
    api = new WatchedApi()
    for (const of of ['used', 'other']) {
      for (const [, make] of SHARED) api.put(...make(of, 0))
      for (const [plural, spec] of Object.entries(REFERRERS)) api.put(plural, named(`by-${of}`, { spec: spec(of) }))
    }
    caches = createOperatorCaches({ client: api.client, specs: CONTROLLERS.map(({ cache }) => cache), namespaces: undefined })
    await caches.shared.waitForSync(AbortSignal.timeout(60_000))
  })
  afterEach(async () => await caches.shared.close())

  it.each(Object.keys(REFERRERS))('[002-027] wakes the controller of %s for those that name it, and for no other', async (plural) => {
    const controller = CONTROLLERS.find(({ cache }) => cache.type.plural === plural) ?? expect.fail(plural)
    const woken: string[] = []
    for (const source of controller.sources(caches)) source.subscribe(({ name }) => void woken.push(name))
    for (const [what, make] of SHARED.filter(([shared]) => names(plural, shared))) {
      woken.length = 0
      api.put(...make('used', 1))
      await vi.waitFor(() => expect(woken, what).toContain('by-used'), 10_000)
      // It comes after the first on the same watch, so nothing of the first is still to come then.
      api.put(...make('other', 1))
      await vi.waitFor(() => expect(woken, what).toContain('by-other'), 10_000)
      expect(new Set(woken.slice(0, woken.indexOf('by-other'))), what).toEqual(new Set(['by-used']))
    }
  })
})
