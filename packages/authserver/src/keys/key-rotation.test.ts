import { generateKeyPairSync } from 'node:crypto'
import { TestClock } from '@thv/kernel/clock'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { expect, it, vi } from 'vitest'
import { ProjectedVolume } from '../testing/projected-volume.ts'
import { startTestAuthServer, type TestAuthServer } from '../testing/test-auth-server.ts'

const CLIENTS = 4
const RELOAD_MS = 30_000

interface TestKey {
  readonly pem: string
  readonly kid: string
}

async function newKey(): Promise<TestKey> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const kid = await calculateJwkThumbprint(privateKey.export({ format: 'jwk' }) as never, 'sha256')
  return { pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), kid }
}

/** Keeps the published keys until it fetches them again, as `Cache-Control` lets it. */
class Validator {
  #keys: JSONWebKeySet = { keys: [] }

  async fetchKeys(server: TestAuthServer): Promise<string[]> {
    this.#keys = (await (await fetch(`${server.issuer}/.well-known/jwks.json`)).json()) as JSONWebKeySet
    return this.#keys.keys.map(({ kid = '' }) => kid)
  }

  async accepts(token: string, server: TestAuthServer): Promise<boolean> {
    const options = { issuer: server.issuer, audience: server.resource }
    return await jwtVerify(token, createLocalJWKSet(this.#keys), options).then(
      () => true,
      () => false,
    )
  }
}

it('keys that are rotated under load in three steps refuse no token, at any replica and at a validator elsewhere', async () => {
  await using stack = new AsyncDisposableStack()
  const volume = stack.use(new ProjectedVolume())
  const [oldest, first, second, third] = (await Promise.all([1, 2, 3, 4].map(newKey))) as [TestKey, TestKey, TestKey, TestKey]
  const publish = (current: TestKey, other: TestKey) =>
    volume.publish({ 'current.pem': current.pem, 'other.pem': other.pem, hmac: 'x'.repeat(32) })
  publish(first, oldest)
  const config = {
    signing_key_config: { key_dir: volume.folder, signing_key_file: 'current.pem', fallback_key_files: ['other.pem'] },
    hmac_secret_files: [volume.path('hmac')],
  }
  const start = async () => {
    const clock = new TestClock(Date.now())
    return { clock, server: stack.use(await startTestAuthServer({ config, clock, store: createMemoryAuthStore() })) }
  }
  const one = await start()
  const two = await start() // reads the files later than the other one
  const { server } = one
  const validator = new Validator()
  expect(await validator.fetchKeys(server)).toEqual([first.kid, oldest.kid])

  const issued: string[] = []
  const refused: string[] = []
  let checked = 0
  const isKnownTo = ({ server: replica }: typeof one, token: string) => {
    const { alg = '', kid } = decodeProtectedHeader(token)
    return replica.server.findKeys({ alg, kid }).length === 1
  }
  async function check(token: string): Promise<void> {
    if (!isKnownTo(one, token)) refused.push('the replica that issued it')
    if (!isKnownTo(two, token)) refused.push('the other replica')
    if (!(await validator.accepts(token, server))) refused.push('the validator')
    checked++
  }
  const stop = new AbortController()
  async function refreshing(): Promise<void> {
    const client = await server.client()
    let { body } = await server.tokens(client)
    while (!stop.signal.aborted) {
      const answer = await server.token({ grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '', client_id: client })
      if (answer.status !== 200) refused.push(`a refresh token: ${JSON.stringify(answer.body)}`)
      else body = answer.body
      issued.push(body['access_token'] ?? '')
      await check(issued.at(-1) ?? '')
      await check(issued[Math.floor(Math.random() * issued.length)] ?? '')
    }
  }
  const load = Promise.all(Array.from({ length: CLIENTS }, refreshing))
  const goOn = async () => {
    const wanted = checked + 10 * CLIENTS
    await vi.waitFor(() => expect(checked).toBeGreaterThan(wanted), { timeout: 60_000, interval: 10 })
  }
  const readAgain = async (replica: typeof one, kid: string) => {
    await replica.clock.advance(RELOAD_MS)
    await vi.waitFor(() => expect(replica.server.server.findKeys({ alg: 'ES256', kid })).toHaveLength(1), { timeout: 60_000 })
  }
  try {
    await goOn()
    publish(first, second) // 1. the new key is published
    for (const replica of [one, two]) {
      await readAgain(replica, second.kid)
      await goOn()
    }
    expect(await validator.fetchKeys(server)).toEqual([first.kid, second.kid]) // an hour later
    publish(second, first) // 2. it signs, and the old one stays published
    for (const replica of [one, two]) {
      await replica.clock.advance(RELOAD_MS)
      await goOn()
    }
    await vi.waitFor(() => expect(issued.map((token) => decodeProtectedHeader(token).kid)).toContain(second.kid), { timeout: 60_000 })
    await goOn()
    expect(await validator.fetchKeys(server)).toEqual([second.kid, first.kid])
    await goOn()
  } finally {
    stop.abort()
    await load
  }
  expect(refused).toEqual([])
  const signedBy = new Set(issued.map((token) => decodeProtectedHeader(token).kid))
  expect(signedBy).toEqual(new Set([first.kid, second.kid]))

  publish(second, third) // 3. after the lifetime of an access token
  await readAgain(one, third.kid)
  expect(server.server.findKeys({ alg: 'ES256', kid: first.kid })).toEqual([])
})
