import { clientAt } from '@thv/gateway/testing/legacy-from'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import { startTestRunner } from '../testing/test-runner.ts'
import { fixtureServer, pipeRuntime } from './stdio/testing/pipe-runtime.ts'
import { startStdioRunner } from './stdio/testing/stdio-runner.ts'

/* Effects on others of a client that opens many sessions, over HTTP and over stdio. */

const FLOODER = '127.0.0.2'
const OTHER = '127.0.0.3'
const MAX = 4

interface Proxy extends AsyncDisposable {
  readonly url: string
  readonly clock: TestClock
  /** Sessions that the server behind the proxy still has. */
  readonly behind: () => number
}

async function httpProxy(): Promise<Proxy> {
  const clock = new TestClock()
  const fixture = await startFixture({ era: 'legacy' })
  const runner = await startTestRunner({ backend: fixture.url, clock, sessions: MAX })
  await runner.probed()
  return {
    ...{ url: runner.url, clock, behind: () => fixture.stats.sessions },
    async [Symbol.asyncDispose]() {
      await runner[Symbol.asyncDispose]()
      await fixture.stop()
    },
  }
}

async function stdioProxy(): Promise<Proxy> {
  const clock = new TestClock()
  const store = createMemorySessionStore<never>({ clock, maxSessions: MAX })
  const runner = await startStdioRunner({ runtime: pipeRuntime(fixtureServer({ era: 'legacy' })), clock, store })
  return {
    ...{ url: runner.url, clock, behind: () => runner.backend.status.sessions },
    async [Symbol.asyncDispose]() {
      await runner[Symbol.asyncDispose]()
      await store.close()
    },
  }
}

describe.each([
  ['streamable HTTP', httpProxy],
  ['stdio', stdioProxy],
])('the session table of a proxy for %s', (_, start) => {
  it('drops a session that sends nothing after its initialize within a minute', async () => {
    await using proxy = await start()
    const client = clientAt(proxy.url, OTHER)
    const silent = String(await client.open())
    const used = String(await client.open())
    await proxy.clock.advance(59_000)
    expect(await client.use(used)).toBe(200)
    await proxy.clock.advance(1_000)
    expect(await client.use(silent)).toBe(404)
    await proxy.clock.advance(60_000)
    expect(await client.use(used)).toBe(200)
    await expect.poll(() => proxy.behind()).toBe(1)
  })

  it('makes room at the expense of the address with the most sessions', async () => {
    await using proxy = await start()
    const [flooder, other] = [clientAt(proxy.url, FLOODER), clientAt(proxy.url, OTHER)]
    const kept = String(await other.open())
    expect(await other.use(kept)).toBe(200)
    const flood: string[] = []
    for (let count = 0; count < 2 * MAX; count++) {
      await proxy.clock.advance(1)
      flood.push(String(await flooder.open()))
      expect(flood.at(-1)).toHaveLength(32)
    }
    await proxy.clock.advance(1)
    const second = String(await other.open())
    expect(await Promise.all([kept, second].map((id) => other.use(id)))).toEqual([200, 200])
    const left = await Promise.all(flood.map((id) => flooder.use(id)))
    expect(left).toEqual([404, 404, 404, 404, 404, 404, 200, 200])
  })
})

it('a session that cannot be stored is refused, and not left behind at the server', async () => {
  const fixture = await startFixture({ era: 'legacy' })
  const create = () => Promise.reject(new ThvError('redis_unavailable', 'it does not answer'))
  const runner = await startTestRunner({ backend: fixture.url, store: { ...createMemorySessionStore(), create } })
  try {
    await runner.probed()
    const before = fixture.stats.sessions
    expect(await clientAt(runner.url, OTHER).open()).toBe(503)
    expect(fixture.stats.sessions).toBe(before)
  } finally {
    await runner[Symbol.asyncDispose]()
    await fixture.stop()
  }
})
