import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { WireClient } from '@thv/gateway/testing/wire-client'
import { startBackend } from '@thv/http/testing/backend'
import { systemClock, TestClock } from '@thv/kernel/clock'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { expect, it } from 'vitest'
import { startGuardedRunner } from './testing/guarded-runner.ts'

/* Ten thousand invented tokens, as fast as they can be sent. */

const BAD_TOKENS = 10_000
const FIRST = 2_000
const CALL = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
const HEAD = `POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${CALL.length}\r\n`

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')
setFlagsFromString('--no-expose-gc')
const heapInUse = () => {
  collect()
  return getHeapStatistics().used_heap_size
}

interface Flood {
  /** How often each status came. */
  readonly answers: ReadonlyMap<number, number>
  /** Characters of all tokens. */
  readonly chars: number
  /** Calls of another client meanwhile; each was answered with 200. */
  readonly served: number
}

/** Sends `count` tokens over so many connections, several requests at a time on each, while another client goes on with its calls. */
async function flood({ good, count, connections, token }: FloodOptions): Promise<Flood> {
  const url = new URL(good.url)
  const answers = new Map<number, number>()
  const [state, sum] = [{ sent: 0 }, { chars: 0, served: 0 }]
  const request = () => {
    const invented = token(state.sent++)
    sum.chars += invented.length
    return `${HEAD}Host: ${url.host}\r\nAuthorization: Bearer ${invented}\r\n\r\n${CALL}`
  }
  const send = async () => {
    const socket = connect(Number(url.port), url.hostname).setEncoding('latin1')
    while (state.sent < count) {
      const batch = Array.from({ length: Math.min(PIPELINED, count - state.sent) }, request)
      socket.write(batch.join(''))
      for (const status of await statusesFrom(socket, batch.length)) answers.set(status, (answers.get(status) ?? 0) + 1)
    }
    socket.destroy()
  }
  const use = async () => {
    do {
      expect((await good.modernCall('echo')).status).toBe(200)
      sum.served++
    } while (state.sent < count)
  }
  await Promise.all([...Array.from({ length: connections }, send), use()])
  return { answers, ...sum }
}

/** Below what the server has in work at a time for one connection. */
const PIPELINED = 8

function statusesFrom(socket: Socket, count: number): Promise<number[]> {
  const { promise, resolve, reject } = Promise.withResolvers<number[]>()
  let text = ''
  const onData = (chunk: string) => {
    text += chunk
    const found = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
    if (found.length === count && text.endsWith('}}')) resolve(found.map(([, status]) => Number(status)))
  }
  const onEnd = () => reject(new Error(`the connection ended: ${text.slice(-500)}`))
  socket.on('data', onData).once('close', onEnd).once('error', reject)
  return promise.finally(() => socket.off('data', onData).off('close', onEnd).off('error', reject))
}

interface FloodOptions {
  /** Its calls go on meanwhile. */
  readonly good: WireClient
  readonly count: number
  readonly connections: number
  readonly token: (index: number) => string
}

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

it('10,000 invented tokens cost the provider a few questions and the runner no memory, and a client with a good token is served meanwhile', async () => {
  // The clock stands, so that no question is due because time has passed.
  await using guarded = await startGuardedRunner({ authClock: new TestClock(Date.now()) })
  const { idp, runner } = guarded
  const [head = '', payload = ''] = (await idp.token({ claims: { sub: 'eve', note: 'x'.repeat(1_500) } })).split('.')
  /** Unknown keys, wrong signatures, and no tokens at all. */
  const token = (index: number) => {
    const unknown = encoded({ alg: 'ES256', kid: randomUUID(), typ: 'at+jwt' })
    const forged = Buffer.from(`${randomUUID()}${randomUUID()}`).subarray(0, 64).toString('base64url')
    return [`${unknown}.${payload}.${forged}`, `${head}.${payload}.${forged}`, `${randomUUID()}${payload}`][index % 3] ?? ''
  }
  const good = await guarded.client('ada')
  expect((await good.modernCall('echo')).status).toBe(200)
  const asked = idp.hits(OIDC_PATHS.jwks)
  const first = await flood({ good, count: FIRST, connections: 16, token })
  const [heap, labels] = [heapInUse(), runner.metrics.render().split('\n').length]
  const rest = await flood({ good, count: BAD_TOKENS - FIRST, connections: 16, token })

  expect([...first.answers, ...rest.answers]).toEqual([
    [401, FIRST],
    [401, BAD_TOKENS - FIRST],
  ])
  expect(idp.hits(OIDC_PATHS.jwks) - asked).toBeLessThanOrEqual(3)
  expect(idp.hits(OIDC_PATHS.introspection)).toBe(0)
  expect(first.served + rest.served).toBeGreaterThan(10)
  expect(runner.metrics.render().split('\n')).toHaveLength(labels)
  // A cache that kept tokens would hold all of it. The log of this test keeps a line for each.
  expect(rest.chars).toBeGreaterThan(10_000_000)
  expect(heapInUse() - heap).toBeLessThan(rest.chars / 5)
})

it('10,000 invented opaque tokens: at most 64 questions at a time, 503 for the rest, and known tokens and new JWTs are served', async () => {
  const state = { open: 0, most: 0, asked: 0 }
  await using provider = await startBackend(async (_request, response) => {
    state.asked++
    state.most = Math.max(state.most, ++state.open)
    await systemClock.sleep(20)
    state.open--
    response.setHeader('content-type', 'application/json').end('{"active":false}')
  })
  const introspection = { introspection_url: `${provider.url}/introspect`, client_id: 'runner', client_secret: 'only-for-tests' }
  await using guarded = await startGuardedRunner({ config: { oidc_config: introspection } })
  const good = await guarded.client('ada')
  expect((await good.modernCall('echo')).status).toBe(200)
  const { answers, served } = await flood({ good, count: BAD_TOKENS, connections: 48, token: () => randomUUID() })
  const [rejected = 0, unavailable = 0] = [answers.get(401), answers.get(503)]
  expect([[...answers.keys()].sort(), rejected + unavailable]).toEqual([[401, 503], BAD_TOKENS])
  expect(state.most).toBeLessThanOrEqual(64)
  expect(state.asked).toBeLessThan(BAD_TOKENS)
  expect(served).toBeGreaterThan(1)
  expect((await (await guarded.client('grace')).modernCall('echo')).status).toBe(200)
})
