import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { ThvError } from '@thv/kernel/errors'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { describe, expect, it } from 'vitest'
import { parseVmcpConfig } from '../config/load-vmcp-config.ts'
import { startGuardedBackend } from '../testing/guarded-backend.ts'
import { documentOf, startLive } from '../testing/live-vmcp.ts'
import { LiveConfig } from './live-config.ts'
import { LiveServer, type LiveServerOptions } from './live-server.ts'

const POLL = { timeout: 20_000, interval: 20 }

const connect = (url: string) => connectSdk(new StreamableHTTPClientTransport(new URL(url)), 'legacy')

describe('a configuration that changes while the server runs', () => {
  it('takes over backends that come, change and go, without ending a session', async () => {
    await using a = await startFixture({ only: ['greet'] })
    await using b = await startGuardedBackend()
    b.accepts = () => true
    const one = { name: 'a', url: a.url }
    await using live = await startLive(documentOf([one]))
    await using session = await connect(live.url)
    let changes = 0
    session.client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
    const names = async () => (await session.client.listTools()).tools.map(({ name }) => name)
    expect(await names()).toEqual(['a_greet'])

    live.write(documentOf([one, { name: 'b', url: b.url }]))
    await expect.poll(() => changes, POLL).toBeGreaterThan(0)
    await expect.poll(names, POLL).toEqual(['a_greet', 'b_hello'])
    expect(await session.text('b_hello')).toBe('')

    const [unchanged, kept] = [live.offer.roster.get('a'), live.offer.roster.get('b')]
    const headerInjection = { headerName: 'Authorization', headerValue: 'Bearer two' }
    live.write(
      documentOf([one, { name: 'b', url: b.url }], {
        outgoingAuth: { source: 'inline', backends: { b: { type: 'header_injection', headerInjection } } },
      }),
    )
    await expect.poll(() => session.text('b_hello'), POLL).toBe('Bearer two')
    expect(live.offer.roster.get('a')).toBe(unchanged)
    expect(live.offer.roster.get('b')).toBe(kept) // other credentials need no other session at the backend

    live.write(documentOf([one], { aggregation: { conflictResolution: 'prefixOnConflict' } }))
    await expect.poll(names, POLL).toEqual(['greet'])
    expect(await session.text('greet', { name: 'Ada' })).toContain('Ada')
    expect((await live.status()).backends).toHaveLength(1)
  })

  it('moves the subscriptions of a session to a backend that has another address', async () => {
    await using a = await startFixture({ era: 'legacy' })
    await using b = await startFixture({ era: 'legacy' })
    await using live = await startLive(documentOf([{ name: 'x', url: a.url }]))
    await using session = await connect(live.url)
    const [resource] = (await session.client.listResources()).resources
    await session.client.subscribeResource({ uri: resource?.uri ?? '' })
    live.write(documentOf([{ name: 'x', url: b.url }]))
    await expect.poll(() => live.offer.roster.get('x')?.backend.url, POLL).toBe(b.url)
    await live.offer.view.attempted
    await expect
      .poll(async () => {
        await session.text('x_touch_resource', { uri: resource?.uri ?? '' })
        return session.notifications
      }, POLL)
      .toContain('notifications/resources/updated')
  })

  it('keeps the configuration in force while a newer one is wrong, and says so', async () => {
    await using a = await startFixture({ only: ['greet'] })
    const good = documentOf([{ name: 'a', url: a.url }])
    await using live = await startLive(good)
    await using session = await connect(live.url)
    const stays = async () => expect((await session.client.listTools()).tools.map(({ name }) => name)).toEqual(['a_greet'])

    for (const [text, problem] of [
      ['name: [', 'is not valid YAML'],
      [documentOf([{ name: 'a', url: a.url }], { metadta: {} }), 'metadta'],
      [documentOf([{ name: 'a', url: 'http://169.254.169.254/mcp' }]), 'backends.a.url'],
      [documentOf([{ name: 'a', url: a.url, type: 'entry', caBundlePath: '/does/not/exist.crt' }]), 'caBundlePath'],
    ] as const) {
      live.write(text)
      await expect.poll(async () => (await live.status()).config['problem'], POLL).toContain(problem)
      await stays()
      expect(await live.metrics()).toMatch(/^toolhive_vmcp_config_valid 0$/m)
    }
    expect(live.log.lines.join('\n')).toContain('the one before stays in force')

    live.write(documentOf([{ name: 'a', url: a.url }], { name: 'other', metadata: { note: 'x' } }))
    await expect.poll(async () => (await live.status()).config, POLL).toMatchObject({ problem: null, needs_restart: ['name'] })
    expect(await live.metrics()).toMatch(/^toolhive_vmcp_config_valid 1$/m)
    expect(await live.metrics()).toMatch(/^toolhive_vmcp_config_reloads_total\{outcome="failed"\} [1-9]/m)
    await stays()
  })

  it('replaces policies, whole or not at all', async () => {
    await using a = await startFixture({ only: ['greet', 'add_numbers'] })
    const withPolicies = (...policies: string[]) =>
      documentOf([{ name: 'a', url: a.url }], { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } } })
    const only = (tool: string) => `permit(principal, action == Action::"call_tool", resource == Tool::"a_${tool}");`
    await using live = await startLive(withPolicies(only('greet')))
    await using session = await connect(live.url)
    const names = async () => (await session.client.listTools()).tools.map(({ name }) => name)
    expect(await names()).toEqual(['a_greet'])
    live.write(withPolicies('permit(this is no policy);'))
    await expect.poll(async () => (await live.status()).config['problem'], POLL).toContain('incomingAuth.authz')
    expect(await names()).toEqual(['a_greet'])
    live.write(withPolicies(only('add_numbers')))
    await expect.poll(names, POLL).toEqual(['a_add_numbers'])
  })

  it('keeps policies and the provider whose claims they see together until the next start', () => {
    const issuer = 'http://127.0.0.1:1'
    const upstream = (name: string) => ({ name, type: 'oidc', oidc_config: { issuer_url: 'https://idp.example.com', client_id: name } })
    const textOf = (policy: string, primaryUpstreamProvider?: string) =>
      documentOf([{ name: 'a', url: 'http://127.0.0.1:2/mcp' }], {
        incomingAuth: {
          ...{ type: 'oidc', oidc: { issuer, audience: `${issuer}/mcp`, resource: `${issuer}/mcp`, scopes: ['openid'] } },
          authz: { type: 'cedar', policies: [policy], primaryUpstreamProvider },
        },
        authServer: {
          ...{ issuer, scopes_supported: ['openid'], allowed_audiences: [`${issuer}/mcp`] },
          upstreams: [upstream('corp'), upstream('wiki')],
        },
      })
    const [first, second] = ['permit(principal, action, resource);', 'forbid(principal, action, resource);']
    const text = textOf(first, 'corp')
    const live = new LiveConfig(parseVmcpConfig(text, 'test'), text)
    const inForce = () => [live.current.incomingAuth.authz?.policies, live.state.problem, live.state.needsRestart]
    for (const provider of ['wiki', undefined]) {
      live.offer(textOf(second, provider), 'test')
      expect(inForce()).toEqual([[first], undefined, ['incomingAuth']])
    }
    live.offer(textOf(second, 'corp'), 'test')
    expect(inForce()).toEqual([[second], undefined, []])
  })

  it('looks for a backend whose resource has become ready, once', async () => {
    const text = documentOf([{ name: 'a', url: 'http://127.0.0.1:1/mcp' }])
    const looks: string[] = []
    let ready: readonly string[] = ['a']
    const server = new LiveServer({
      ...{ live: new LiveConfig(parseVmcpConfig(text, 'test'), text), policies: undefined, env: {}, discovered: undefined },
      ...{ log: new CollectingLog(), metrics: createMetrics() },
      feed: {
        resolve: async () => ({ backends: [], leftOut: [], warnings: [], ready: new Set(ready) }),
        close: async () => undefined,
      },
      roster: { apply: () => ({ joined: [], left: [] }) } as unknown as LiveServerOptions['roster'],
      view: { look: (name: string) => looks.push(name) } as unknown as LiveServerOptions['view'],
      offer: {} as LiveServerOptions['offer'],
    })
    const applied = () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      server.onChange(resolve)
      server.request()
      return promise
    }
    for (const [next, expected] of [
      [['a'], ['a']],
      [['a', 'b'], ['b']],
      [['a', 'b'], []],
      [['b'], []],
      [['a', 'b'], ['a']],
    ] as const) {
      ready = next
      looks.length = 0
      await applied()
      expect(looks).toEqual(expected)
    }
    await server.close()
  })

  it('applies one that comes while the one before it is refused', async () => {
    const textOf = (note: string) => documentOf([{ name: 'a', url: 'http://127.0.0.1:1/mcp' }], { metadata: { note } })
    const live = new LiveConfig(parseVmcpConfig(textOf('first'), 'test'), textOf('first'))
    const refused = Promise.withResolvers<never>()
    const applied: string[] = []
    const server = new LiveServer({
      ...{ live, policies: undefined, env: {}, log: new CollectingLog(), metrics: createMetrics(), discovered: undefined },
      feed: {
        resolve: async ({ metadata }) =>
          metadata['note'] === 'bad' ? await refused.promise : { backends: [], leftOut: [], warnings: [], ready: new Set() },
        close: async () => undefined,
      },
      roster: { apply: () => ({ joined: [], left: [] }) } as unknown as LiveServerOptions['roster'],
      view: { reconfigure: () => undefined } as unknown as LiveServerOptions['view'],
      offer: { reconfigure: ({ metadata }: VmcpConfig) => applied.push(metadata['note'] ?? '') } as unknown as LiveServerOptions['offer'],
    })
    server.offer(textOf('bad'), 'test')
    server.offer(textOf('good'), 'test')
    refused.reject(new ThvError('vmcp_config_invalid', 'is refused'))
    await server.first
    await server.close()
    expect(applied).toEqual(['good'])
    expect(live.state.problem).toBeUndefined()
  })
})
