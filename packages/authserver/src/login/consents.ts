import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '@thv/kernel/clock'
import { withoutLoopbackPort } from '../clients/redirect-uri.ts'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import { readCookie } from './browser-cookie.ts'

/** Exactly what a user agreed to. */
export interface ConsentSubject {
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly providers: readonly string[]
}

export interface Consent {
  readonly id: string
  /** Of the client, for the account page. */
  readonly label: string
  /** Epoch seconds. */
  readonly until: number
}

/** Consents lie in the browser, signed and bound to it: a store that is lost takes none away, and none can be made up. */
export interface Consents {
  list(request: IncomingMessage, browser: string): readonly Consent[]
  holds(request: IncomingMessage, browser: string, subject: ConsentSubject): boolean
  /** The cookie with one more. */
  grant(request: IncomingMessage, browser: string, consent: { subject: ConsentSubject; label: string }): string
  /** The cookie with one less. */
  withdraw(request: IncomingMessage, browser: string, id: string): string
}

export const CONSENT_COOKIE = 'thv_consents'
export const CONSENT_SECONDS = 30 * 24 * 3_600
/** The oldest go, so that the cookie stays below the 4096 bytes that browsers keep. */
const MAX_CONSENTS = 20
const MAX_BODY = 3_600
const PURPOSE = 'consents'

export function createConsents(secrets: ServerSecrets, clock: Clock, isSecure: boolean): Consents {
  const now = () => Math.floor(clock.now() / 1_000)

  function list(request: IncomingMessage, browser: string): Consent[] {
    const [body = '', signature = ''] = (readCookie(request, CONSENT_COOKIE, isSecure) ?? '').split('.')
    if (body === '' || !secrets.verifies(PURPOSE, `${browser} ${body}`, signature)) return []
    const consents = JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Consent[]
    return consents.filter(({ until }) => until > now())
  }

  function cookie(browser: string, consents: readonly Consent[]): string {
    const kept = consents.slice(-MAX_CONSENTS)
    const encoded = () => Buffer.from(JSON.stringify(kept)).toString('base64url')
    let body = encoded()
    while (body.length > MAX_BODY) {
      kept.shift()
      body = encoded()
    }
    return `${body}.${secrets.sign(PURPOSE, `${browser} ${body}`)}`
  }

  return {
    list,
    holds: (request, browser, subject) => list(request, browser).some(({ id }) => id === idOf(subject)),
    grant(request, browser, { subject, label }) {
      const id = idOf(subject)
      const others = list(request, browser).filter((consent) => consent.id !== id)
      return cookie(browser, [...others, { id, label: label.slice(0, 40), until: now() + CONSENT_SECONDS }])
    },
    withdraw: (request, browser, id) =>
      cookie(
        browser,
        list(request, browser).filter((consent) => consent.id !== id),
      ),
  }
}

function idOf({ clientId, redirectUri, scopes, providers }: ConsentSubject): string {
  const subject = [clientId, withoutLoopbackPort(redirectUri), [...scopes].sort(), providers]
  return createHash('sha256').update(JSON.stringify(subject)).digest('base64url').slice(0, 32)
}
