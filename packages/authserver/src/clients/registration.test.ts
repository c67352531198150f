import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { ephemeralServerSecrets, loadServerSecrets } from '../keys/server-secrets.ts'
import { judgeRegistration } from './registration.ts'
import { createSealedClients } from './sealed-clients.ts'

const RULES = {
  scopes_supported: ['openid', 'mcp', 'files'],
  baseline_client_scopes: ['openid'],
  allow_confidential_client_registration: true,
  insecure_allow_confidential_over_loopback_http: false,
  force_confidential_redirect_uris: ['https://forced.example.com/cb'],
}
const OK = { redirect_uris: ['https://app.example.com/cb'] }
const CLIENT = {
  redirect_uris: ['http://127.0.0.1/cb', 'http://localhost/cb'],
  client_name: 'App',
  grant_types: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_method: 'none',
  scope: 'openid mcp',
}

describe('a registration', () => {
  it.each<[string, object]>([
    ['https', {}],
    ['loopback without a port', { redirect_uris: ['http://localhost/callback'] }],
    ['loopback in IPv6', { redirect_uris: ['http://[::1]:1234/cb'] }],
    ['a reversed domain as scheme', { redirect_uris: ['com.example.app:/cb'] }],
    ['a scheme of a known application', { redirect_uris: ['cursor://anysphere.cursor-retrieval/oauth/cb'] }],
    ['unknown members', { jwks_uri: 'https://x', future: 1 }],
    ['an empty scope', { scope: '' }],
    ['a secret', { token_endpoint_auth_method: 'client_secret_basic' }],
  ])('is accepted: %s', (_, more) => {
    expect(judgeRegistration({ ...OK, ...more }, RULES)).toMatchObject({ ok: true })
  })

  it.each<[string, object, string]>([
    ['RFC 7591 §2: no redirect URI', { redirect_uris: [] }, 'invalid_redirect_uri'],
    [
      'RFC 7591 §2: eleven redirect URIs',
      { redirect_uris: Array.from({ length: 11 }, (_, n) => `https://a.example.com/${n}`) },
      'invalid_redirect_uri',
    ],
    [
      'RFC 7591 §2: redirect URIs of more than 2,000 characters',
      { redirect_uris: [`https://a.example.com/${'x'.repeat(2_000)}`] },
      'invalid_redirect_uri',
    ],
    ['RFC 7591 §2: no list', { redirect_uris: 'https://app.example.com/cb' }, 'invalid_redirect_uri'],
    ['RFC 9700 §2.6: plain http', { redirect_uris: ['http://app.example.com/cb'] }, 'invalid_redirect_uri'],
    ['RFC 9700 §4.1.3: a wildcard', { redirect_uris: ['https://*.example.com/cb'] }, 'invalid_redirect_uri'],
    ['RFC 6749 §3.1.2: a fragment', { redirect_uris: ['https://app.example.com/cb#x'] }, 'invalid_redirect_uri'],
    ['RFC 6749 §3.1.2: an empty fragment', { redirect_uris: ['https://app.example.com/cb#'] }, 'invalid_redirect_uri'],
    ['RFC 3986 §7.5: a user name', { redirect_uris: ['https://a@app.example.com/cb'] }, 'invalid_redirect_uri'],
    ['RFC 3986 §7.5: an empty user name', { redirect_uris: ['https://@app.example.com/cb'] }, 'invalid_redirect_uri'],
    ['RFC 3986 §6.2.2.3: dots in the path', { redirect_uris: ['https://app.example.com/a/../cb'] }, 'invalid_redirect_uri'],
    ['RFC 3986 §6.2.2.2: encoded dots', { redirect_uris: ['https://app.example.com/a/%2E%2e/cb'] }, 'invalid_redirect_uri'],
    ['RFC 8252 §7.1: a script', { redirect_uris: ['javascript:alert(1)'] }, 'invalid_redirect_uri'],
    ['RFC 8252 §7.1: data', { redirect_uris: ['data:text/html,x'] }, 'invalid_redirect_uri'],
    ['RFC 8252 §7.1: a file', { redirect_uris: ['file:///etc/passwd'] }, 'invalid_redirect_uri'],
    ['RFC 8252 §8.3: loopback as a number', { redirect_uris: ['http://2130706433/cb'] }, 'invalid_redirect_uri'],
    ['RFC 8252 §8.3: loopback in capitals', { redirect_uris: ['http://LOCALHOST/cb'] }, 'invalid_redirect_uri'],
    ['RFC 8252 §8.3: a name that begins like loopback', { redirect_uris: ['http://127.0.0.1.example.com/cb'] }, 'invalid_redirect_uri'],
    ['RFC 9700 §4.1.3: letters of another script', { redirect_uris: ['https://аpp.example.com/cb'] }, 'invalid_redirect_uri'],
    ['RFC 9700 §2.1.2: the implicit grant', { grant_types: ['authorization_code', 'implicit'] }, 'invalid_client_metadata'],
    ['RFC 7591 §2.1: no code grant', { grant_types: ['refresh_token'] }, 'invalid_client_metadata'],
    ['RFC 9700 §2.1.2: response type token', { response_types: ['token'] }, 'invalid_client_metadata'],
    ['RFC 7591 §2: an unknown authentication method', { token_endpoint_auth_method: 'private_key_jwt' }, 'invalid_client_metadata'],
    [
      'RFC 8252 §8.5: a secret on loopback',
      { redirect_uris: ['http://127.0.0.1/cb'], token_endpoint_auth_method: 'client_secret_post' },
      'invalid_client_metadata',
    ],
    [
      'RFC 7591 §5: a public client where a secret is demanded',
      { redirect_uris: ['https://forced.example.com/cb'] },
      'invalid_client_metadata',
    ],
    ['RFC 6749 §3.3: a scope that does not exist', { scope: 'openid admin' }, 'invalid_client_metadata'],
    ['RFC 7591 §5: a name with control characters', { client_name: 'a\u202eb' }, 'invalid_client_metadata'],
    ['RFC 7591 §2: a long name', { client_name: 'x'.repeat(257) }, 'invalid_client_metadata'],
    ['RFC 7591 §2: a software id that is no ASCII', { software_id: 'ü' }, 'invalid_client_metadata'],
  ])('is refused: %s', (_, more, error) => {
    expect(judgeRegistration({ ...OK, ...more }, RULES)).toMatchObject({ ok: false, error })
  })

  it('gets the baseline scopes beside those that it asks for', () => {
    expect(judgeRegistration({ ...OK, scope: 'mcp' }, RULES)).toMatchObject({ client: { scope: 'mcp openid' } })
    expect(judgeRegistration(OK, RULES)).toMatchObject({ client: { scope: 'openid mcp files' } })
  })
})

describe('sealed client ids', () => {
  const clock = new TestClock()
  const sealed = createSealedClients(ephemeralServerSecrets(), clock)

  it('hold the metadata, and are short', () => {
    const { clientId } = sealed.seal(CLIENT)
    expect(sealed.open(clientId)).toEqual(CLIENT)
    expect(clientId.length).toBeLessThan(300)
    expect(clientId).not.toContain('App')
  })

  it('are refused when cut, altered, spelled otherwise or of another server', () => {
    const { clientId } = sealed.seal(CLIENT)
    const at = clientId.length - 6
    const other = clientId[at] === 'A' ? 'B' : 'A'
    const foreign = createSealedClients(ephemeralServerSecrets(), clock).seal(CLIENT).clientId
    for (const bad of [
      clientId.slice(0, -2),
      `${clientId}A`,
      clientId.slice(0, at) + other + clientId.slice(at + 1),
      `${clientId}=`,
      ` ${clientId}`,
      foreign,
      'c1.',
      '',
    ])
      expect(sealed.open(bad)).toBeUndefined()
  })

  it('are good as long as the secret that sealed them is one of several, and refused when it is removed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'thv-secrets-'))
    const files = ['new', 'old'].map((name) => join(folder, name))
    const [fresh = '', old = ''] = files
    for (const file of files) await writeFile(file, file.padEnd(40, 'x'))
    const before = createSealedClients(await loadServerSecrets([old]), clock)
    const { clientId } = before.seal(CLIENT)
    expect(createSealedClients(await loadServerSecrets([fresh, old]), clock).open(clientId)).toMatchObject({ client_name: 'App' })
    expect(createSealedClients(await loadServerSecrets([fresh]), clock).open(clientId)).toBeUndefined()
    // Also for a server that runs on.
    await writeFile(old, 'another secret of forty characters, or so')
    const running = await loadServerSecrets([old])
    await writeFile(old, old.padEnd(40, 'x'))
    expect(createSealedClients(running, clock).open(clientId)).toBeUndefined()
    expect(await running.reload()).toBe(true)
    expect(createSealedClients(running, clock).open(clientId)).toMatchObject({ client_name: 'App' })
    await rm(folder, { recursive: true })
  })

  it('are good for a year', async () => {
    const { clientId } = sealed.seal(CLIENT)
    await clock.advance(364 * 24 * 3_600_000)
    expect(sealed.open(clientId)).toBeDefined()
    await clock.advance(2 * 24 * 3_600_000)
    expect(sealed.open(clientId)).toBeUndefined()
  })

  it('have a secret of their own', () => {
    const [one, two] = [sealed.seal(CLIENT).clientId, sealed.seal(CLIENT).clientId]
    expect(sealed.secretOf(one)).toBe(sealed.secretOf(one))
    expect(sealed.secretOf(one)).not.toBe(sealed.secretOf(two))
  })

  it('take no memory: a flood of registrations leaves nothing behind', () => {
    const ids = new Set(Array.from({ length: 2_000 }, () => sealed.seal(CLIENT).clientId))
    expect(ids.size).toBe(2_000)
    expect(Object.keys(sealed).toSorted()).toEqual(['open', 'seal', 'secretOf'])
  })
})
