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

export function createAccountSessions(store: AuthStore, clock: Clock): AccountSessions {
  const listed = async (account: string) => sessionsOf((await store.get(KIND, account))?.value)

  const update = (account: string, change: (sessions: readonly Listed[]) => readonly Listed[]) =>
    store.update(KIND, account, { ttlMs: LIFE_MS }, (value) => ({ sessions: change(sessionsOf(value)) }) as unknown as JsonObject)

  /** Those that have not ended, oldest first. */
  async function alive(sessions: readonly Listed[]): Promise<readonly AccountSession[]> {
    const logins = await Promise.all(sessions.map(({ family }) => store.get('login', family)))
    return sessions.flatMap((session, index) => {
      const login = logins[index]?.value as unknown as LoginRecord | undefined
      return login === undefined ? [] : [{ ...session, providers: login.providers }]
    })
  }

  /** Those that have ended leave first. */
  async function trim(account: string): Promise<void> {
    const sessions = await listed(account)
    const kept = new Set((await alive(sessions)).slice(-MAX_SESSIONS).map(({ family }) => family))
    const gone = new Set(sessions.flatMap(({ family }) => (kept.has(family) ? [] : [family])))
    await update(account, (current) => current.filter(({ family }) => !gone.has(family)))
  }

  return {
    async add(account, { family, client }) {
      const session = { family, ...(client !== undefined && { client }), since: clock.now() }
      let count = 0
      await update(account, (sessions) => {
        count = sessions.length + 1
        return [...sessions, session]
      })
      if (count > MAX_SESSIONS + SLACK) await trim(account)
    },
    async list(account) {
      return (await alive(await listed(account))).toReversed()
    },
  }
}

function sessionsOf(value: JsonObject | undefined): readonly Listed[] {
  return Array.isArray(value?.['sessions']) ? (value['sessions'] as unknown as Listed[]) : []
}
