import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/kernel/json'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { LoginRecord } from '../provider/login-record.ts'

/** A login of a user with a client. */
export interface AccountSession {
  readonly family: string
  /** Name of the client. */
  readonly client?: string | undefined
  /** Epoch milliseconds. */
  readonly since: number
  /** Providers that it may use. */
  readonly providers: readonly string[]
}

type Listed = Omit<AccountSession, 'providers'>

/** The logins of each user, for the account page. */
export interface AccountSessions {
  add(account: string, login: { readonly family: string; readonly client?: string | undefined }): Promise<void>
  /** Those that have not ended, newest first. */
  list(account: string): Promise<readonly AccountSession[]>
}

const KIND = 'account'
const LIFE_MS = 400 * 24 * 3_600_000
/** Of one user; the oldest is forgotten first. */
const MAX_SESSIONS = 500
const LOCK_MS = 5_000
const LOCK_ATTEMPTS = 8

export function createAccountSessions(store: AuthStore, clock: Clock): AccountSessions {
  async function listed(account: string): Promise<readonly Listed[]> {
    const value = (await store.get(KIND, account))?.value
    return Array.isArray(value?.['sessions']) ? (value['sessions'] as unknown as Listed[]) : []
  }

  /** Another login of the same user is over in a moment. */
  async function locked(account: string): Promise<AsyncDisposable | undefined> {
    const backoff = createBackoff({ baseMs: 20, maxMs: 200 })
    for (let attempt = 1; ; attempt++) {
      const lock = await store.lock(`account ${account}`, LOCK_MS)
      if (lock !== undefined || attempt === LOCK_ATTEMPTS) return lock
      await clock.sleep(backoff.next())
    }
  }

  return {
    async add(account, { family, client }) {
      await using _lock = await locked(account)
      const sessions = [...(await listed(account)), { family, ...(client !== undefined && { client }), since: clock.now() }]
      const value = { sessions: sessions.slice(-MAX_SESSIONS) } as unknown as JsonObject
      await store.put(KIND, account, { value, ttlMs: LIFE_MS })
    },
    async list(account) {
      const all = await listed(account)
      const logins = await Promise.all(all.map(({ family }) => store.get('login', family)))
      return all
        .flatMap((session, index) => {
          const login = logins[index]?.value as unknown as LoginRecord | undefined
          return login === undefined ? [] : [{ ...session, providers: login.providers }]
        })
        .reverse()
    },
  }
}
