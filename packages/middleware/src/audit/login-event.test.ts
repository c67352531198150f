import { readFileSync } from 'node:fs'
import type { LoginEvent } from '@thv/authserver/login-events'
import { TestClock } from '@thv/kernel/clock'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, it } from 'vitest'
import { loginEvent } from './login-event.ts'

const SCHEMA = JSON.parse(readFileSync(new URL('../../../../docs/reference/audit-event.schema.json', import.meta.url), 'utf8'))

it.each<LoginEvent>([
  { type: 'auth_login', outcome: 'success', account: 'ada', provider: 'corp', address: '192.0.2.1' },
  { type: 'auth_token_refresh', outcome: 'success', account: 'ada', client: 'editor', address: '192.0.2.1' },
  { type: 'auth_registration', outcome: 'denied', reason: 'invalid_redirect_uri: no', address: '192.0.2.1' },
  { type: 'auth_client', outcome: 'denied', reason: 'invalid_client at /oauth/token', address: '192.0.2.1' },
  { type: 'auth_token_reuse', outcome: 'denied', reason: 'refresh' },
  { type: 'auth_upstream_refresh', outcome: 'failure', account: 'ada', provider: 'crm', reason: 'ended' },
])('an event $type is a line of the audit log, as its schema says', (event) => {
  const ajv = new Ajv2020({ strict: false, formats: { 'date-time': true, uuid: true } })
  const line = JSON.parse(JSON.stringify(loginEvent(event, { component: 'x', backend: 'b', clock: new TestClock() })))
  expect(ajv.validate(SCHEMA, line), JSON.stringify(ajv.errors)).toBe(true)
  expect(line).toMatchObject({ type: event.type, outcome: event.outcome, subjects: { user: event.account ?? 'anonymous' } })
  expect(line.source).toMatchObject(event.address === undefined ? { type: 'local' } : { type: 'network', value: '192.0.2.1' })
})
