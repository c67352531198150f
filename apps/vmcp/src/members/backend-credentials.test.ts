import { CLIENT, startTokenServer } from '@thv/auth/outgoing/testing/token-server'
import { createOutbound } from '@thv/http/outbound/outbound'
import { TestClock } from '@thv/kernel/clock'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { backendCredentials } from './backend-credentials.ts'
import { outgoingScope } from './outgoing-scope.ts'

async function setUp(cache: { enabled?: boolean; maxEntries?: number; ttlOffset?: string } = {}) {
  const stack = new AsyncDisposableStack()
  const tokens = stack.use(await startTokenServer())
  const outbound = stack.use(createOutbound())
  const clock = new TestClock()
  const backend = {
    ...{ name: 'x', transport: 'streamable-http', headers: { 'x-note': 'n', authorization: 'weak' } },
    auth: {
      config: { type: 'token_exchange', tokenExchange: { tokenUrl: tokens.url, clientId: CLIENT.id, audience: 'a', scopes: [] } },
      ...{ secret: CLIENT.secret, authenticates: true },
      cache: { enabled: true, maxEntries: 10_000, ttlOffset: '60s', ...cache },
    },
  } as unknown as ResolvedBackend
  const credentials = backendCredentials(backend, { outbound, clock, log: new CollectingLog() })
  if (credentials === undefined) throw new TypeError('no credentials')
  stack.defer(() => credentials.close())
  const as = async (token: string) => {
    const scope = { caller: { principal: token, token }, exchange: undefined }
    return (await outgoingScope.run(scope, async () => await credentials.headers()))['authorization']
  }
  return { tokens, clock, credentials, as, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

describe('the token cache of a backend', () => {
  it('[002-142] [002-143] replaces a token ttlOffset before it expires, and makes no request before', async () => {
    await using at = await setUp({ ttlOffset: '2m' })
    expect(await at.as('ada')).toBe('Bearer issued-1.for.ada')
    await at.clock.advance(479_000)
    expect(await at.as('ada')).toBe('Bearer issued-1.for.ada')
    await at.clock.advance(2_000)
    expect(await at.as('ada')).toBe('Bearer issued-2.for.ada')
  })

  it('[002-144] never holds more than maxEntries', async () => {
    await using at = await setUp({ maxEntries: 2 })
    for (const caller of ['a', 'b', 'c']) await at.as(caller)
    await at.as('b')
    await at.as('c')
    expect(at.tokens.forms).toHaveLength(3)
    await at.as('a')
    expect(at.tokens.forms).toHaveLength(4)
  })

  it('holds nothing when it is not enabled', async () => {
    await using at = await setUp({ enabled: false })
    await at.as('a')
    await at.as('a')
    expect(at.tokens.forms).toHaveLength(2)
  })

  it('has no credentials and forwards none for requests of our own', async () => {
    await using at = await setUp()
    expect(await at.credentials.headers()).toEqual({ 'x-note': 'n' })
    expect(at.tokens.backend.requests).toHaveLength(0)
  })
})
