import type { IncomingMessage } from 'node:http'
import { TestClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { ephemeralServerSecrets } from '../keys/server-secrets.ts'
import { cookieLine } from './browser-cookie.ts'
import { CONSENT_COOKIE, CONSENT_SECONDS, createConsents } from './consents.ts'

it.each(['a', '漢', '"', '😀'])('the cookie is never larger than browsers keep, whatever names the clients have (%s)', (character) => {
  const consents = createConsents(ephemeralServerSecrets(), new TestClock(), false)
  const subjectOf = (n: number) => ({ clientId: `c${n}`, redirectUri: 'https://a.example/cb', scopes: ['mcp'], providers: ['corp'] })
  let value = ''
  const request = () => ({ headers: { cookie: `${CONSENT_COOKIE}=${value}` } }) as IncomingMessage
  for (let n = 0; n < 30; n++) {
    value = consents.grant(request(), 'browser', { subject: subjectOf(n), label: character.repeat(80) })
    expect(cookieLine(CONSENT_COOKIE, value, { isSecure: true, maxAgeSeconds: CONSENT_SECONDS }).length).toBeLessThan(4_096)
  }
  const held = consents.list(request(), 'browser')
  expect(held.length).toBeGreaterThan(5)
  expect(consents.holds(request(), 'browser', subjectOf(29))).toBe(true)
  expect(consents.holds(request(), 'browser', subjectOf(0))).toBe(false)
})
