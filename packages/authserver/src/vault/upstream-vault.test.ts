import { type Clock, TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { createRecordCipher } from '@thv/store/redis/record-cipher'
import { beforeEach, describe, expect, it } from 'vitest'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'
import type { UpstreamRefresher, UpstreamTokenSet } from '../upstream-tokens.ts'
import { openRow, rowId } from './upstream-row.ts'
import { UpstreamVault, type UpstreamVaultOptions } from './upstream-vault.ts'

const KEY = { account: 'ada', provider: 'github' }
const HOUR = 3_600_000

/** A provider that takes each refresh token once and answers with the next one. */
class RotatingProvider implements UpstreamRefresher {
  readonly provider = KEY.provider
  generation = 'g1'
  refreshes = 0
  refused = 0
  fails: Error | undefined
  delayMs = 0
  rotates = true
  /** Known only to the test clock. */
  readonly #clock: Clock
  #good = 'r0'

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async refresh(refreshToken: string, signal: AbortSignal): Promise<UpstreamTokenSet> {
    if (this.delayMs > 0) await this.#clock.sleep(this.delayMs, signal)
    if (this.fails) throw this.fails
    if (refreshToken !== this.#good) {
      this.refused++
      throw new UpstreamRefused('invalid_grant')
    }
    const n = ++this.refreshes
    if (this.rotates) this.#good = `r${n}`
    return { accessToken: `a${n}`, refreshToken: this.rotates ? this.#good : undefined, expiresAt: this.#clock.now() + HOUR }
  }

  revoke(): void {
    this.#good = 'none'
  }
}

let clock: TestClock
let store: AuthStore
let provider: RotatingProvider
let failures: string[]

beforeEach(() => {
  clock = new TestClock()
  store = createMemoryAuthStore({ clock })
  provider = new RotatingProvider(clock)
  failures = []
})

function vault(more: Partial<UpstreamVaultOptions> = {}): UpstreamVault {
  const cipher = createRecordCipher(['secret'])
  const onRefreshFailed: UpstreamVaultOptions['onRefreshFailed'] = (key, failure) => failures.push(`${key.provider} ${failure}`)
  return new UpstreamVault({ store, cipher: () => cipher, refreshers: [provider], clock, onRefreshFailed, ...more })
}

const tokens = (more: Partial<UpstreamTokenSet> = {}): UpstreamTokenSet => ({
  accessToken: 'a0',
  refreshToken: 'r0',
  expiresAt: clock.now() + HOUR,
  ...more,
})

const save = (into: UpstreamVault, more: Partial<UpstreamTokenSet> = {}) =>
  into.save({ ...KEY, subject: 'ada@github', generation: 'g1', tokens: tokens(more) })

/** Lets what waits go on. */
const settled = <T>(work: T | Promise<T>, ms = 20_000): Promise<T> => {
  const result = Promise.resolve(work)
  void result.catch(() => {})
  return clock.advance(ms).then(() => result)
}

describe('a token', () => {
  it('is given at once when it is near, by every replica, and to its user only', async () => {
    const one = vault()
    await save(one)
    expect(one.use(KEY)).toEqual({ kind: 'usable', accessToken: 'a0', idToken: undefined })
    expect(one.use(KEY)).toBe(one.use(KEY)) // nothing is made per call
    expect(await vault().use(KEY)).toMatchObject({ accessToken: 'a0' })
    expect(await one.use({ ...KEY, account: 'bob' })).toEqual({ kind: 'missing' })
    expect(await one.use({ ...KEY, provider: 'gitlab' })).toEqual({ kind: 'missing' })
  })

  it('lies sealed in the store, cannot be moved, and is resealed at the next write', async () => {
    const one = vault()
    await save(one)
    const record = await store.get('upstream', '3:ada:github')
    expect(JSON.stringify(record)).not.toMatch(/accessToken|ada@github/)
    await store.put('upstream', '3:bob:github', { value: record?.value ?? {}, ttlMs: HOUR })
    expect(await one.use({ ...KEY, account: 'bob' })).toEqual({ kind: 'missing' })
    const rotated = createRecordCipher(['new', 'secret'])
    const other = vault({ cipher: () => rotated })
    await clock.advance(0.9 * HOUR)
    expect(await other.use(KEY)).toMatchObject({ accessToken: 'a0' })
    await clock.advance(1_000)
    const onlyNew = createRecordCipher(['new'])
    expect(await vault({ cipher: () => onlyNew }).use(KEY)).toMatchObject({ accessToken: 'a1' })
    const removed = createRecordCipher(['other'])
    expect(await vault({ cipher: () => removed }).use(KEY)).toEqual({ kind: 'missing' })
  })

  it('is refreshed in the background from 80 % of its life on, while calls go on with the old one', async () => {
    const one = vault()
    await save(one)
    await clock.advance(0.79 * HOUR)
    await one.use(KEY)
    await clock.advance(0)
    expect(provider.refreshes).toBe(0)
    await clock.advance(0.02 * HOUR)
    await one.use(KEY) // reads again first: a minute has passed
    provider.delayMs = 5_000
    expect(await one.use(KEY)).toMatchObject({ accessToken: 'a0' })
    await clock.advance(6_000)
    expect(await one.use(KEY)).toMatchObject({ accessToken: 'a1' })
    expect(provider.refreshes).toBe(1)
  })

  it('that has ended is replaced before it is used, once for all who wait', async () => {
    const one = vault()
    await save(one)
    await clock.advance(HOUR + 1)
    provider.delayMs = 1_000
    const all = await settled(Promise.all(Array.from({ length: 20 }, () => one.use(KEY))))
    expect(new Set(all.map((each) => JSON.stringify(each)))).toEqual(new Set(['{"kind":"usable","accessToken":"a1"}']))
    expect(provider.refreshes).toBe(1)
  })

  it('keeps the refresh token when an answer has none', async () => {
    const one = vault()
    provider.rotates = false
    await save(one)
    await save(one, { accessToken: 'again', refreshToken: undefined })
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ accessToken: 'a1' })
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ accessToken: 'a2' })
  })

  it('of another user at the provider, or of another client of ours, does not get the old refresh token', async () => {
    const one = vault()
    await save(one)
    await one.save({ ...KEY, subject: 'eve@github', generation: 'g1', tokens: tokens({ refreshToken: undefined }) })
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY), 0)).toEqual({ kind: 'missing' }) // it lived as long as its access token
    await save(one)
    provider.generation = 'g2'
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY), 0)).toEqual({ kind: 'ended' })
    expect(provider.refused).toBe(0)
  })

  it('is gone when its user disconnects, everywhere within seconds', async () => {
    const [one, two] = [vault(), vault()]
    await save(one)
    await two.use(KEY)
    expect(await one.connected('ada')).toEqual(['github'])
    await one.remove(KEY)
    expect(await one.connected('ada')).toEqual([])
    expect(await one.use(KEY)).toEqual({ kind: 'missing' })
    await clock.advance(5_001)
    two.use(KEY) // leads to another look
    await clock.advance(0)
    expect(await two.use(KEY)).toEqual({ kind: 'missing' })
  })
})

describe('replicas', () => {
  it('race for a rotating refresh token: one refreshes, none is refused', async () => {
    const replicas = [vault(), vault(), vault()]
    await save(replicas[0] as UpstreamVault)
    provider.delayMs = 2_000
    for (let round = 1; round <= 5; round++) {
      await clock.advance(HOUR + 1)
      const all = await settled(Promise.all(replicas.flatMap((one) => [one.use(KEY), one.use(KEY)])))
      expect(new Set(all.map((each) => each.kind === 'usable' && each.accessToken))).toEqual(new Set([`a${round}`]))
    }
    expect([provider.refreshes, provider.refused]).toEqual([5, 0])
  })

  it('take over from one that died with the lock', async () => {
    const one = vault()
    await save(one)
    await clock.advance(HOUR + 1)
    expect(await store.lock('upstream:3:ada:github', 5_000)).toBeDefined() // and is never released
    expect(await settled(one.use(KEY))).toMatchObject({ accessToken: 'a1' })
  })
})

describe('a provider that fails', () => {
  const down = new ThvError('auth_provider_unavailable', 'down')

  it('is no problem while its token lives, nor for other providers', async () => {
    const other: UpstreamRefresher = { provider: 'jira', generation: 'g', refresh: async () => ({ accessToken: 'j1' }) }
    const one = vault({ refreshers: [provider, other] })
    await save(one)
    await one.save({
      account: 'ada',
      provider: 'jira',
      subject: 'x',
      generation: 'g',
      tokens: tokens({ accessToken: 'j0', refreshToken: 'jr' }),
    })
    provider.fails = down
    await clock.advance(0.85 * HOUR)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ accessToken: 'a0' })
    expect(failures).toEqual(['github unavailable'])
    await clock.advance(HOUR)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ kind: 'unavailable', retryAfterMs: expect.any(Number) })
    expect(await settled(one.use({ account: 'ada', provider: 'jira' }), 0)).toMatchObject({ accessToken: 'j1' })
  })

  it('is asked with back-off, and again when it is back', async () => {
    const one = vault()
    await save(one)
    provider.fails = down
    await clock.advance(HOUR + 1)
    for (let i = 0; i < 50; i++) await settled(one.use(KEY), 0)
    expect(failures).toHaveLength(1)
    provider.fails = undefined
    await clock.advance(30_000)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ accessToken: 'a1' })
  })

  it('or takes too long is given up', async () => {
    const one = vault()
    await save(one)
    provider.delayMs = HOUR
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY))).toMatchObject({ kind: 'unavailable' })
  })

  it('or refuses the refresh token ends the row, and is not asked again', async () => {
    const one = vault()
    await save(one)
    provider.revoke()
    await clock.advance(0.85 * HOUR)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ accessToken: 'a0' }) // what is left of it
    await clock.advance(HOUR)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ kind: expect.stringMatching(/ended|missing/) })
    expect(provider.refused).toBe(1)
    expect(failures[0]).toBe('github ended')
    await save(one)
    expect(one.use(KEY)).toMatchObject({ kind: 'usable' })
  })
})

describe('a provider that refuses our client, or has no time', () => {
  it.each(['invalid_client', 'temporarily_unavailable'])('(%s) leaves the refresh token for later', async (code) => {
    const one = vault()
    await save(one)
    provider.fails = new UpstreamRefused(code)
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ kind: 'unavailable' })
    provider.fails = undefined
    await clock.advance(30_000)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ accessToken: 'a1' })
  })
})

describe('a backend that rejects a token', () => {
  it('gets another one, once a minute; after that only a login helps', async () => {
    const one = vault()
    await save(one)
    one.rejected(KEY, 'a0')
    expect(await one.use(KEY)).toMatchObject({ accessToken: 'a1' })
    one.rejected(KEY, 'a0') // a late one about the token before
    expect(one.use(KEY)).toMatchObject({ accessToken: 'a1' })
    one.rejected(KEY, 'a1')
    expect(await one.use(KEY)).toEqual({ kind: 'ended' })
    expect(provider.refreshes).toBe(1)
    await clock.advance(60_001)
    expect(await one.use(KEY)).toMatchObject({ accessToken: 'a2' })
  })

  it('leads to a login where nothing can be refreshed', async () => {
    const one = vault()
    await save(one, { refreshToken: undefined })
    one.rejected(KEY, 'a0')
    expect(await one.use(KEY)).toEqual({ kind: 'ended' })
  })
})

describe('a store that fails', () => {
  it('does not stop users whose tokens are near', async () => {
    const one = vault()
    await save(one)
    const away = () => Promise.reject(new ThvError('store_unavailable', 'away'))
    const { get } = store
    store.get = away
    await clock.advance(120_000)
    expect(await one.use(KEY)).toMatchObject({ accessToken: 'a0' })
    expect(await one.use({ ...KEY, account: 'bob' })).toMatchObject({ kind: 'unavailable' })
    store.get = get
  })

  it('is asked several times to keep what a provider has rotated', async () => {
    const one = vault()
    await save(one)
    const { put } = store
    let attempts = 0
    store.put = (...args) => (++attempts < 3 ? Promise.reject(new ThvError('store_unavailable', 'away')) : put.apply(store, args))
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY))).toMatchObject({ accessToken: 'a1' })
    expect(attempts).toBe(3)
    expect(await vault().use(KEY)).toMatchObject({ accessToken: 'a1' })
  })
})

describe('the ID token of a refresh is judged after the tokens are stored', () => {
  const fresh = { accessToken: 'a1', refreshToken: 'r1', idToken: 'i1' }
  it.each<[string, () => Promise<'same user' | 'other user' | 'invalid'>, object | undefined, string]>([
    ['of the same user', async () => 'same user', fresh, 'usable'],
    ['that proves nothing', async () => 'invalid', { ...fresh, idToken: 'i0' }, 'usable'],
    [
      'that cannot be judged now',
      () => Promise.reject(new ThvError('auth_provider_unavailable', 'no keys')),
      { ...fresh, idToken: 'i0' },
      'usable',
    ],
    ['that is judged for too long', () => new Promise(() => {}), { ...fresh, idToken: 'i0' }, 'usable'],
    ['of another user', async () => 'other user', undefined, 'ended'],
  ])('%s', async (_, judge, expected, outcome) => {
    const cipher = createRecordCipher(['secret'])
    const rowNow = async () => {
      const record = await store.get('upstream', rowId(KEY))
      const row = record && openRow(record.value, rowId(KEY), cipher)
      return row && { accessToken: row.accessToken, refreshToken: row.refreshToken, idToken: row.idToken }
    }
    const storedWhenJudged: unknown[] = []
    const refresher: UpstreamRefresher = {
      provider: KEY.provider,
      generation: 'g1',
      refresh: async () => ({ ...fresh, expiresAt: clock.now() + HOUR }),
      async judge(idToken, subject) {
        storedWhenJudged.push(await rowNow(), idToken, subject)
        return await judge()
      },
    }
    const one = vault({ refreshers: [refresher], cipher: () => cipher })
    await save(one, { idToken: 'i0' })
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY))).toMatchObject({ kind: outcome })
    // The rotated refresh token is safe before anything is judged.
    expect(storedWhenJudged).toEqual([{ ...fresh, idToken: 'i0' }, 'i1', 'ada@github'])
    expect(await rowNow()).toEqual(expected)
  })

  it('and an answer without one keeps the one before', async () => {
    const refresher: UpstreamRefresher = {
      ...{ provider: KEY.provider, generation: 'g1' },
      refresh: async () => ({ accessToken: 'a1', expiresAt: clock.now() + HOUR }),
      judge: () => Promise.reject(new Error('there is nothing to judge')),
    }
    const one = vault({ refreshers: [refresher] })
    await save(one, { idToken: 'i0' })
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY))).toEqual({ kind: 'usable', accessToken: 'a1', idToken: 'i0' })
  })

  it('prepares the client of the provider before it takes the lock', async () => {
    const order: string[] = []
    const lock = store.lock.bind(store)
    store.lock = (...args) => {
      order.push('lock')
      return lock(...args)
    }
    const refresher: UpstreamRefresher = {
      ...{ provider: KEY.provider, generation: 'g1' },
      prepare: async () => void order.push('prepare'),
      refresh: async () => ({ accessToken: 'a1', expiresAt: clock.now() + HOUR }),
    }
    const one = vault({ refreshers: [refresher] })
    await save(one)
    await clock.advance(HOUR + 1)
    await settled(one.use(KEY))
    expect(order).toEqual(['prepare', 'lock'])
  })
})

describe('a provider that answers 500 after it has taken the refresh token', () => {
  it('costs its own users a login, and is asked with that token once more', async () => {
    const one = vault()
    await save(one)
    const { refresh } = provider
    // The token is used up, and the answer is lost.
    provider.refresh = async (...args) => {
      await refresh.apply(provider, args)
      throw new ThvError('auth_provider_unavailable', 'answered 500')
    }
    await clock.advance(HOUR + 1)
    expect(await settled(one.use(KEY), 0)).toMatchObject({ kind: 'unavailable' })
    provider.refresh = refresh
    await clock.advance(30_000)
    expect(await settled(one.use(KEY), 0)).toEqual({ kind: 'ended' })
    for (let i = 0; i < 5; i++) {
      await clock.advance(60_000)
      expect(await settled(one.use(KEY), 0)).toMatchObject({ kind: expect.stringMatching(/ended|missing/) })
    }
    expect([provider.refreshes, provider.refused]).toEqual([1, 1])
    await save(one)
    expect(one.use(KEY)).toMatchObject({ kind: 'usable' })
  })
})

it.each<[string, () => [UpstreamVault, UpstreamVault]]>([
  ['the same replica', () => Array(2).fill(vault()) as [UpstreamVault, UpstreamVault]],
  ['another replica', () => [vault(), vault()]],
])('a provider that is disconnected while %s refreshes its tokens stays disconnected', async (_, replicas) => {
  const [one, other] = replicas()
  await save(one)
  provider.delayMs = 5_000
  await clock.advance(HOUR + 1)
  const used = Promise.resolve(other.use(KEY))
  await clock.advance(1_000)
  const removed = one.remove(KEY)
  await settled(Promise.all([used, removed]))
  expect(provider.refreshes).toBe(1)
  expect(await store.get('upstream', rowId(KEY))).toBeUndefined()
  expect(await one.use(KEY)).toEqual({ kind: 'missing' })
})
