import { createOutbound } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import { systemClock } from '@thv/kernel/clock'
import { BackendEras } from '@thv/mcp/client/http/backend-eras'
import type { Caller } from '@thv/middleware/pipeline/request-context'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { staticBackends } from '../discover/static-backends.ts'
import { healthSettings } from '../live/live-server.ts'
import type { LoginVault } from '../members/login-vault.ts'
import { MemberRoster } from '../members/member-roster.ts'
import { outgoingScope } from '../members/outgoing-scope.ts'
import { type GuardedBackend, startGuardedBackend } from '../testing/guarded-backend.ts'
import { FIRST_WAIT_MS, testConfig } from '../testing/test-vmcp.ts'
import { viewSettings } from './built-view.ts'
import { ViewCache } from './view-cache.ts'

const ISSUER = 'https://login.example.com'

/** Users have a token at `chat`, and none at `wiki`, which they log in to on demand. */
const vault = {
  issuer: ISSUER,
  onDemand: new Set(['wiki', 'notes']),
  resource: undefined,
  tokens: {
    use: ({ provider }: { provider: string }) =>
      provider === 'chat' ? { kind: 'usable', accessToken: 'of-chat', expiresAt: Number.POSITIVE_INFINITY } : { kind: 'missing' },
    hasJoined: () => false,
    needsLogin: () => {},
    rejected: () => {},
    connectUrl: () => undefined,
  },
} as unknown as LoginVault

/** A view of one backend with credentials of this provider. */
async function open(backend: GuardedBackend, provider: string) {
  const outbound = createOutbound()
  const log = new CollectingLog()
  const eras = new BackendEras({ clock: systemClock })
  const roster = new MemberRoster({ outbound, providers: outbound, login: vault, eras, clock: systemClock, log, version: '1' })
  const use = async (name: string, { url } = backend) => {
    const config = testConfig({ backends: { a: url } })
    const injected = { config: { type: 'upstream_inject', upstreamInject: { providerName: name } }, upstream: { provider: name } } as const
    const resolved = await staticBackends(config, {}, log)
    roster.apply(
      resolved.map((each) => ({ ...each, auth: { ...each.auth, ...injected } })),
      healthSettings(config),
    )
    return config
  }
  const settings = viewSettings(await use(provider))
  const view = new ViewCache({ roster, settings, clock: systemClock, log, firstWaitMs: FIRST_WAIT_MS })
  view.start()
  const as = <T>(user: string, work: () => Promise<T>): Promise<T> => {
    const claims = { sub: user, tsid: 'f1', scope: 'mcp' }
    const identity = { issuer: ISSUER, subject: user, claims }
    const caller = { principal: `${ISSUER}#${user}`, identity, token: 't' } as unknown as Caller
    return outgoingScope.run({ caller, exchange: { headers: {} } as Exchange }, work)
  }
  return {
    ...{ view, roster, use, as },
    async [Symbol.asyncDispose]() {
      await view.close()
      await roster.close()
      eras.close()
      await outbound.close()
    },
  }
}

describe('views of callers with logins', () => {
  it('follow a backend to a provider that users log in to on demand, without another start', async () => {
    await using backend = await startGuardedBackend({ toolOf: (value) => (value === '' ? 'open' : 'own') })
    backend.accepts = () => true
    await using opened = await open(backend, 'chat')
    const { view, roster, use, as } = opened
    const names = (user: string) => as(user, async () => [...(await view.current()).tools.keys()])
    const [member] = roster.all
    expect(await names('ada')).toEqual(['own'])
    expect(member?.onDemandProvider).toBeUndefined()
    await use('wiki')
    expect(roster.all[0]).toBe(member) // its connections and sessions go on
    expect(member?.onDemandProvider).toBe('wiki')
    expect(await names('bob')).toEqual(['open'])
    expect(await as('bob', async () => view.awaitingLogin)).toEqual([member])
    await use('chat')
    expect(member?.onDemandProvider).toBeUndefined()
    expect(await names('carl')).toEqual(['own'])
  })

  it('are asked for no longer than the call that needs them lasts, and stay as they were', async () => {
    await using backend = await startGuardedBackend()
    await using opened = await open(backend, 'wiki')
    const { view, roster, use, as } = opened
    const [member] = roster.all
    if (member === undefined) throw new Error('there is no backend')
    await as('ada', async () => {
      await view.current()
      expect(view.awaitingLogin).toEqual([member])
      // The caller has a token now, and the backend does not answer any more.
      await use('chat')
      backend.isSilent = true
      const before = backend.seen.length
      const call = new AbortController()
      const loading = view.loadAfterLogin([member], call.signal)
      loading.catch(() => {})
      await expect.poll(() => backend.seen.length, { timeout: 10_000 }).toBeGreaterThan(before)
      call.abort(new Error('the client went away'))
      await expect(loading).rejects.toThrow('given up')
      expect(view.awaitingLogin).toEqual([member])
    })
  })

  it('keep the lists of a backend that gets another address until the new one was asked, and not with other logins', async () => {
    await using first = await startGuardedBackend({ toolOf: () => 'before' })
    await using second = await startGuardedBackend({ toolOf: () => 'after' })
    await using opened = await open(first, 'chat')
    const { view, use, as } = opened
    const names = () => [...view.now.tools.keys()]
    await as('ada', async () => {
      await view.current()
      second.isSilent = true
      await use('chat', second)
      expect(view.current()).not.toBeInstanceOf(Promise)
      expect([names(), view.freshForMs]).toEqual([['before'], 0])
      await use('chat', first)
      await use('chat', { ...second, url: 'http://127.0.0.1:9/mcp' }) // nothing listens on it
      void view.current()
      await expect.poll(names, { timeout: 20_000 }).toEqual([])
      await use('chat', first)
      void view.current()
      await expect.poll(names, { timeout: 20_000 }).toEqual(['before'])
      await use('notes', second)
      expect(names()).toEqual([])
    })
  })
})
