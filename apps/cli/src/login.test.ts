import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type GuardedRunner, startGuardedRunner } from '../../proxyrunner/src/testing/guarded-runner.ts'
import { startLoginRunner } from '../../proxyrunner/src/testing/login-runner.ts'
import { runThv, type ThvRun } from './testing/run-thv.ts'

/* thv logs in to a protected runner with a real provider; a scripted browser does what the user would. */

const POLICIES = [
  'permit(principal, action, resource) unless { resource == Tool::"echo" };',
  '@scope("files:write") permit(principal, action, resource == Tool::"echo");',
]

let home: string
let guarded: GuardedRunner
let url: string
let visits: URL[]
let runs: ThvRun[]

/** Counted from the beginning of each test. */
let before: { readonly registrations: number; readonly revocations: number; readonly grants: number }

beforeAll(async () => {
  guarded = await startGuardedRunner({
    scopes: ['mcp', 'files:write'],
    config: {
      oidc_config: { scopes: ['mcp'] },
      authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES } },
    },
  })
  url = guarded.runner.url
})
afterAll(() => guarded[Symbol.asyncDispose]())
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'thv-login-'))
  visits = []
  runs = []
  before = { registrations: registrations(), revocations: guarded.idp.hits(OIDC_PATHS.revocation), grants: guarded.idp.grants.length }
})
afterEach(() => rmSync(home, { recursive: true }))

const registrations = () => guarded.idp.hits(OIDC_PATHS.registration)

/** Signs in as ada, and goes back to where the client waits. */
function openBrowser(address: string): void {
  visits.push(new URL(address))
  const redirectUri = new URL(address).searchParams.get('redirect_uri') ?? ''
  signIn(address, { user: 'ada', redirectUri })
    .then((back) => fetch(back))
    .catch((error: unknown) => console.error(error))
}

async function thv(args: readonly string[], { hasBrowser = true } = {}): Promise<ThvRun> {
  const run = await runThv(args, { variables: { HOME: home }, ...(hasBrowser && { openBrowser }) })
  runs.push(run)
  return run
}

const file = () => join(home, '.config/toolhive-ts/credentials.json')
const stored = () => JSON.parse(readFileSync(file(), 'utf8'))

describe('thv call on a protected server', () => {
  it('logs in with the browser, calls, and needs no browser for the next call', async () => {
    const { out, err, error } = await thv(['call', url, 'add_numbers', 'a=2', 'b=40'])
    expect({ out, error }).toEqual({ out: '42\n', error: undefined })
    expect(err).toContain(`To log in, open this address in a browser on this machine:\n\n  ${guarded.idp.issuer}/`)
    expect(Object.fromEntries(visits[0]?.searchParams ?? [])).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: url,
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
    })
    expect(await thv(['call', url, 'add_numbers', 'a=1', 'b=1'], { hasBrowser: false })).toEqual({ out: '2\n', err: '', error: undefined })
    expect(visits).toHaveLength(1)
    expect(registrations()).toBe(before.registrations + 1)
  })

  it('logs in at the authorization server of the proxy, with the consent of the user, and calls', async () => {
    await using stack = new AsyncDisposableStack()
    const { runner, issuer } = await startLoginRunner(stack, { disable_upstream_token_injection: true })
    const { out, error } = await thv(['call', runner.url, 'add_numbers', 'a=2', 'b=40'])
    expect({ out, error }).toEqual({ out: '42\n', error: undefined })
    expect(visits.map(({ origin }) => origin)).toEqual([issuer])
    expect((await thv(['call', runner.url, 'add_numbers', 'a=1', 'b=1'], { hasBrowser: false })).out).toBe('2\n')
  })

  it('keeps tokens in a file for the owner, and prints none', async () => {
    await thv(['tools', url])
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    expect(statSync(join(home, '.config/toolhive-ts')).mode & 0o777).toBe(0o700)
    const [login] = stored().logins
    expect(login).toMatchObject({ issuer: guarded.idp.issuer, resource: url, servers: [url] })
    for (const secret of [login.accessToken, login.refreshToken]) {
      expect(secret).toBeTypeOf('string')
      expect(JSON.stringify(runs)).not.toContain(secret)
      expect(guarded.logged()).not.toContain(secret)
    }
  })

  it('asks for the further scope of a tool, with those it has', async () => {
    await thv(['tools', url])
    const { out, error } = await thv(['call', url, 'echo', 'text=more'])
    expect(error).toBeUndefined()
    expect(out).toContain('more')
    expect(visits.map((visit) => visit.searchParams.get('scope')?.split(' ').sort())).toEqual([
      ['mcp', 'offline_access'],
      ['files:write', 'mcp', 'offline_access'],
    ])
    // The same registration, unless another process has taken the port meanwhile.
    const redirectUris = new Set(visits.map((visit) => visit.searchParams.get('redirect_uri')))
    expect(registrations()).toBe(before.registrations + redirectUris.size)
  })

  it('renews a token that is about to expire', async () => {
    await thv(['tools', url])
    const due = stored()
    due.logins[0].renewAt = 0
    writeFileSync(file(), JSON.stringify(due))
    // Two at once: one of them renews, the other one takes what it got.
    const both = await Promise.all([1, 2].map(() => thv(['call', url, 'add_numbers', 'a=1', 'b=1'], { hasBrowser: false })))
    expect(both.map(({ out }) => out)).toEqual(['2\n', '2\n'])
    expect(guarded.idp.grants.slice(before.grants).map(({ grantType }) => grantType)).toEqual(['authorization_code', 'refresh_token'])
    expect(stored().logins[0].accessToken).not.toBe(due.logins[0].accessToken)
    expect(visits).toHaveLength(1)
  })

  it('says what to do where no browser can be opened', async () => {
    const { error } = await thv(['tools', url], { hasBrowser: false })
    expect(error).toMatchObject({ code: 'mcp_auth_required', message: expect.stringContaining('log in with "thv login"') })
    expect(visits).toEqual([])
  })

  it('leaves the login alone where a header has the credentials', async () => {
    const { error } = await thv(['tools', url, '--header', 'Authorization=Bearer wrong'])
    expect(error?.code).toBe('mcp_auth_required')
    expect(visits).toEqual([])
  })
})

describe('thv login and thv logout', () => {
  it('prints the address where there is no terminal, and waits for the browser', async () => {
    let said = ''
    const run = runThv(['login', url], {
      variables: { HOME: home },
      err: (text) => {
        said += text
        const address = /^ {2}(http\S+)$/m.exec(text)?.[1]
        if (address !== undefined) openBrowser(address)
      },
    })
    expect((await run).error).toBeUndefined()
    expect(said).toMatch(/Logged in to http\S+\n$/)
    expect((await thv(['login', url])).err).toContain('Already logged in')
    expect((await thv(['call', url, 'add_numbers', 'a=2', 'b=3'], { hasBrowser: false })).out).toBe('5\n')
  })

  it('forgets the tokens and revokes them', async () => {
    await thv(['login', url])
    const [login] = stored().logins
    expect((await thv(['logout', url])).err).toBe(`Logged out of ${url}\n`)
    expect(guarded.idp.hits(OIDC_PATHS.revocation)).toBe(before.revocations + 1)
    expect(stored()).toMatchObject({ logins: [], clients: {} })
    expect(readFileSync(file(), 'utf8')).not.toContain(login.refreshToken)
    expect((await thv(['logout', url])).err).toBe(`There is no login to ${url}\n`)
    expect((await thv(['tools', url], { hasBrowser: false })).error?.code).toBe('mcp_auth_required')
    expect((await thv(['logout'])).error).toMatchObject({ code: 'usage', message: 'name a server, or say --all' })
  })

  it('logs in again, with another registration, when the stored ones are not known any more', async () => {
    await thv(['login', url])
    const known = stored()
    const { issuer } = guarded.idp
    Object.assign(known.logins[0], { renewAt: 0, refreshToken: 'unknown' })
    known.clients[issuer].clientId = 'unknown'
    writeFileSync(file(), JSON.stringify(known))
    // The authorization endpoint shows an error page for an unknown client, so only a refused refresh can be noticed.
    expect((await thv(['call', url, 'add_numbers', 'a=1', 'b=2'])).out).toBe('3\n')
    expect(stored().clients[issuer].clientId).not.toBe('unknown')
    expect(visits).toHaveLength(2)
  })

  it('refuses a file that others can read', async () => {
    await thv(['login', url])
    chmodSync(file(), 0o644)
    expect((await thv(['tools', url])).error).toMatchObject({ code: 'login_failed', message: expect.stringContaining('chmod 600') })
  })

  it('says so where a server asks for no login', async () => {
    await using fixture = await startFixture()
    expect(await thv(['login', fixture.url])).toEqual({ out: '', err: `${fixture.url} does not ask for a login.\n`, error: undefined })
    expect((await thv(['login', 'http://192.0.2.1/mcp'])).error).toMatchObject({
      code: 'usage',
      message: expect.stringContaining('not https'),
    })
  })

  it.each([
    [['--client-secret-file', 'x'], '--client-secret-file needs --client-id'],
    [['--client-id', 'a', '--client-secret-file', '/does/not/exist'], 'cannot be read'],
    [['--callback-port', '0'], '--callback-port must be a port'],
  ])('rejects %j', async (flags, message) => {
    expect((await thv(['login', url, ...flags])).error).toMatchObject({ code: 'usage', message: expect.stringContaining(message) })
  })
})
