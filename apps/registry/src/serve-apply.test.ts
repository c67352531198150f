import { sendJson } from '@thv/http/server/respond'
import { systemClock } from '@thv/kernel/clock'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { createLogger } from '@thv/telemetry/log'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RegistryAccess } from './access/access.ts'
import type { AuthConfig } from './access/auth-config.ts'
import { openAccess } from './api/http/access-port.ts'
import type { RegistryConfig } from './config/registry-config.ts'
import type { RegistryEngine } from './engine/engine.ts'
import { testConfig } from './engine/testing/engine-fixture.ts'
import { type Served, serveRegistry } from './serve/serve.ts'

/* Which rules hold while the engine takes over another configuration: it may serve new data before it says so. */

const OPEN: AuthConfig = { mode: 'anonymous', publicPaths: [] }
const SIGNED_IN: AuthConfig = { mode: 'oauth', publicPaths: [], oauth: { realm: 'r', providers: [] } }
const BY_CLAIMS: AuthConfig = { ...SIGNED_IN, authz: { roles: {} } }

let lifecycle: ReturnType<typeof createLifecycle>
let reloading: PromiseWithResolvers<void>
let closed: AuthConfig[]

beforeEach(() => {
  lifecycle = createLifecycle()
  reloading = Promise.withResolvers()
  closed = []
})
afterEach(() => lifecycle.shutdown())

const configOf = (auth: AuthConfig): RegistryConfig => ({ ...testConfig({ sources: [], registries: [] }), auth })

async function serve(auth: AuthConfig): Promise<Served> {
  const engine = { reload: () => reloading.promise, [Symbol.asyncDispose]: async () => {} } as unknown as RegistryEngine
  return await serveRegistry({
    config: configOf(auth),
    address: { host: '127.0.0.1', port: 0 },
    internalAddress: { host: '127.0.0.1', port: 0 },
    lifecycle,
    log: createLogger({ write: () => {} }),
    clock: systemClock,
    parts: {
      startEngine: async () => engine,
      createAccess: (config): RegistryAccess => ({
        ...openAccess,
        stats: undefined,
        [Symbol.asyncDispose]: async () => void closed.push(config.auth),
      }),
      createApi: ({ config }) => ({ handle: (exchange) => sendJson(exchange, config.auth) }),
      createDiagnostics: () => ({ handle: (exchange) => sendJson(exchange, {}) }),
    },
  })
}

const rulesOf = async ({ address }: Served): Promise<unknown> =>
  await (await fetch(address.url, { headers: { connection: 'close' } })).json()

describe('while another configuration is taken over', () => {
  it.each([
    ['new rules that let in fewer hold', OPEN, SIGNED_IN, SIGNED_IN],
    ['claims that begin to count do', SIGNED_IN, BY_CLAIMS, BY_CLAIMS],
    ['old rules that let in fewer hold', SIGNED_IN, OPEN, SIGNED_IN],
    ['claims that still count do', BY_CLAIMS, SIGNED_IN, BY_CLAIMS],
  ])('%s', async (_title, from, to, meanwhile) => {
    const served = await serve(from)
    const applied = served.apply(configOf(to))
    expect(await rulesOf(served)).toEqual(meanwhile)
    reloading.resolve()
    await applied
    expect(await rulesOf(served)).toEqual(to)
    expect(served.config.auth).toBe(to)
  })

  it('and nothing has changed when it cannot be', async () => {
    const served = await serve(OPEN)
    const applied = served.apply(configOf(SIGNED_IN))
    reloading.reject(new Error('no'))
    await expect(applied).rejects.toThrow('no')
    expect(await rulesOf(served)).toEqual(OPEN)
    expect(served.config.auth).toBe(OPEN)
    await lifecycle.shutdown()
    expect(closed.toSorted((a, b) => (a.mode < b.mode ? -1 : 1))).toEqual([OPEN, SIGNED_IN])
  })
})
