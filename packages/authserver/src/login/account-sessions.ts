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
  /** Those that have not ended, newest first: all of them, or at least the newest 500. */
  list(account: string): Promise<readonly AccountSession[]>
}

const KIND = 'account'
const LIFE_MS = 400 * 24 * 3_600_000
/** Of one user, and not ended: beyond it the oldest are forgotten, which then end by themselves alone. */
const MAX_SESSIONS = 500
/** Whether sessions have ended is looked up once for this many logins, not for each of them. */
const SLACK = 50
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

  /** Those that have not ended, oldest first. */
  async function alive(sessions: readonly Listed[]): Promise<readonly AccountSession[]> {
    const logins = await Promise.all(sessions.map(({ family }) => store.get('login', family)))
    return sessions.flatMap((session, index) => {
      const login = logins[index]?.value as unknown as LoginRecord | undefined
      return login === undefined ? [] : [{ ...session, providers: login.providers }]
    })
  }

  /** Makes room for one more: those that have ended leave first. */
  async function trimmed(sessions: readonly Listed[]): Promise<readonly Listed[]> {
    if (sessions.length < MAX_SESSIONS + SLACK) return sessions
    const kept = new Set((await alive(sessions)).slice(1 - MAX_SESSIONS).map(({ family }) => family))
    return sessions.filter(({ family }) => kept.has(family))
  }

  return {
    async add(account, { family, client }) {
      await using _lock = await locked(account)
      const before = await trimmed(await listed(account))
      const sessions = [...before, { family, ...(client !== undefined && { client }), since: clock.now() }]
      await store.put(KIND, account, { value: { sessions } as unknown as JsonObject, ttlMs: LIFE_MS })
    },
    async list(account) {
      return (await alive(await listed(account))).toReversed()
    },
  }
}
