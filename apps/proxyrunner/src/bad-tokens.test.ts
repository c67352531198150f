import { randomUUID } from 'node:crypto'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { expect, it } from 'vitest'
import { startGuardedRunner } from './testing/guarded-runner.ts'

const FLOODERS = 32
const BAD_TOKENS = 1_000

it('clients with good tokens get their share of a runner that is flooded with invented ones, and the provider is not asked about them', async () => {
  await using guarded = await startGuardedRunner()
  const { idp, runner } = guarded
  const good = await guarded.client('ada')
  expect((await good.modernCall('echo')).status).toBe(200)
  const asked = idp.hits('/jwks')
  const [head = '', payload = ''] = (await idp.token({ claims: { sub: 'eve' } })).split('.')
  /** Each is another one: unknown keys, wrong signatures, and no tokens at all. */
  const invented = (n: number) => {
    const unknown = Buffer.from(JSON.stringify({ alg: 'ES256', kid: randomUUID(), typ: 'at+jwt' })).toString('base64url')
    return [`${unknown}.${payload}.${randomUUID()}`, `${head}.${payload}.${Buffer.from(randomUUID()).toString('base64url')}`, randomUUID()][
      n % 3
    ]
  }

  let sent = 0
  const bad = new Map<number, number>()
  const flood = async () => {
    while (sent < BAD_TOKENS) {
      const { status } = await new WireClient(runner.url, { authorization: `Bearer ${invented(sent++)}` }).modernCall('echo')
      bad.set(status, (bad.get(status) ?? 0) + 1)
    }
  }
  let served = 0
  const use = async () => {
    while (sent < BAD_TOKENS) {
      expect((await good.modernCall('echo')).status).toBe(200)
      served++
    }
  }
  await Promise.all([...Array.from({ length: FLOODERS }, flood), use()])

  expect([...bad.keys()]).toEqual([401])
  // One client among so many; a call that reaches the server takes longer than a rejection.
  expect(served).toBeGreaterThan(BAD_TOKENS / FLOODERS / 10)
  expect(idp.hits('/jwks') - asked).toBeLessThanOrEqual(30)
})
