import type { IncomingMessage } from 'node:http'
import type { Clock } from '@thv/kernel/clock'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import { cookieLine, readCookie } from './browser-cookie.ts'

/** The user that logged in with this browser a short while ago. */
export interface LoginSession {
  readonly account: string
  readonly name?: string | undefined
  readonly email?: string | undefined
  /** Providers where the user logged in. */
  readonly providers: readonly string[]
}

/** Sessions lie in the browser, sealed for it. Only a login at a further provider uses one: everything else asks the first provider again. */
export interface LoginSessions {
  read(request: IncomingMessage, browser: string): LoginSession | undefined
  /** A line of `Set-Cookie`. */
  cookie(browser: string, session: LoginSession): string
}

export const LOGIN_COOKIE = 'thv_login'
const LIFE_SECONDS = 3_600
const MAX_COOKIE = 4_000

export function createLoginSessions(secrets: ServerSecrets, clock: Clock, isSecure: boolean): LoginSessions {
  const cipher = secrets.cipher('login sessions')
  const now = () => Math.floor(clock.now() / 1_000)
  return {
    read(request, browser) {
      const value = readCookie(request, LOGIN_COOKIE, isSecure) ?? ''
      const text = value === '' || value.length > MAX_COOKIE ? undefined : cipher.open(Buffer.from(value, 'base64url'), browser)
      if (text === undefined) return undefined
      const { until, ...session } = JSON.parse(text) as LoginSession & { until: number }
      return until > now() ? session : undefined
    },
    cookie(browser, { account, name, email, providers }) {
      const text = JSON.stringify({
        account,
        name: name?.slice(0, 256),
        email: email?.slice(0, 256),
        providers,
        until: now() + LIFE_SECONDS,
      })
      const value = cipher.seal(text, browser).toString('base64url')
      return cookieLine(LOGIN_COOKIE, value.length > MAX_COOKIE ? '' : value, { isSecure, maxAgeSeconds: LIFE_SECONDS })
    },
  }
}
