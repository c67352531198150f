import { TestClock } from '@thv/kernel/clock'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { describe, expect, it } from 'vitest'
import { createAccountSessions } from './account-sessions.ts'

const MINUTE = 60_000

async function open() {
  const clock = new TestClock()
  const store = createMemoryAuthStore({ clock })
  const accounts = createAccountSessions(store, clock)
  const families = async () => (await accounts.list('ada')).map(({ family }) => family)
  async function logIn(family: string): Promise<void> {
    await store.put('login', family, { value: { account: 'ada', providers: ['corp'] }, ttlMs: MINUTE, family })
    await accounts.add('ada', { family, client: 'x' })
  }
  return { store, families, logIn }
}

describe('the list of the sessions of a user', () => {
  it('keeps an old session that lives however many later ones have ended', async () => {
    const { store, families, logIn } = await open()
    await logIn('old')
    for (let n = 0; n < 1_200; n++) {
      await logIn(`short-${n}`)
      await store.revokeFamily(`short-${n}`, MINUTE)
    }
    await logIn('new')
    expect(await families()).toEqual(['new', 'old'])
    const kept = (await store.get('account', 'ada'))?.value['sessions'] as unknown[]
    expect(kept.length).toBeLessThanOrEqual(550)
  })

  it('keeps the newest 500 of those that live', async () => {
    const { families, logIn } = await open()
    const all = Array.from({ length: 700 }, (_, n) => `long-${n}`)
    for (const family of all) await logIn(family)
    const listed = await families()
    expect(listed.slice(0, 500)).toEqual(all.slice(-500).toReversed())
    expect(listed.length).toBeLessThanOrEqual(550)
  })
})
