import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { createCertificate } from '@thv/http/tls/certificate'
import { systemClock } from '@thv/kernel/clock'
import { configMaps } from '@thv/kube'
import type { OAuthClient, OAuthClientOptions } from '@thv/testkit/oauth/oauth-client'
import { connectPython } from '@thv/testkit/oauth/python-client'
import { connectV1, connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import type { Story } from './story.ts'
import { SERVER, type World } from './world.ts'

/** Of tokens that users get from the provider. */
const AUDIENCE = 'tests'
const CODE = 'authorization_code'
const REFRESH = 'refresh_token'
/** The proxy tolerates clocks that differ by 30 seconds; tokens live for one. */
const TOKEN_END_MS = 32_000

interface Row {
  readonly name: string
  readonly connect: (options: OAuthClientOptions) => Promise<OAuthClient>
  readonly era: 'legacy' | 'modern'
  readonly grantTypes: readonly string[]
}

/** With a refresh token, version 1 of the TypeScript SDK refreshes instead of asking for more scopes, and gives up: so it comes twice. */
const STEPS_UP_ONLY: Row = { name: 'TypeScript v1', connect: connectV1, era: 'legacy', grantTypes: [CODE] }
const REFRESHES_ONLY: Row = { ...STEPS_UP_ONLY, name: 'TypeScript v1 with a refresh token', grantTypes: [CODE, REFRESH] }
const BOTH: readonly Row[] = [
  { name: 'TypeScript v2 in the era before 2026', connect: connectV2, era: 'legacy', grantTypes: [CODE, REFRESH] },
  { name: 'TypeScript v2', connect: connectV2, era: 'modern', grantTypes: [CODE, REFRESH] },
  { name: 'Python in the era before 2026', connect: connectPython, era: 'legacy', grantTypes: [CODE, REFRESH] },
  { name: 'Python', connect: connectPython, era: 'modern', grantTypes: [CODE, REFRESH] },
]

export const oauthClients: Story = {
  title:
    'the official clients find the provider from a 401, register, log in with PKCE and call, ask for the scopes of a tool, and refresh within one session',
  proves: [],
  async tell(world) {
    await using stack = new AsyncDisposableStack()
    const authority = createCertificate({ commonName: 'story', ca: true })
    const caFile = await trusted(authority.certPem, stack)
    const tls = createCertificate({ commonName: 'idp', hosts: [world.hostAddress], issuer: authority })
    const scopes = ['mcp', 'files:write']
    const idp = stack.use(await startOidcServer({ host: world.hostAddress, tls, scopes, rotatesRefreshTokens: false }))
    const url = await guardedServer(world, { idp, ca: authority.certPem })
    const open = async (row: Row) => {
      const client = stack.use(await row.connect({ url, user: 'ada', era: row.era, grantTypes: row.grantTypes, caFile }))
      return { row, client, report: await reportOf(client) }
    }
    const before = idp.grants.length
    const stepping = await Promise.all([STEPS_UP_ONLY, ...BOTH].map(open))
    for (const opened of stepping) expectLogin(world, opened, url)
    world.expect(idp.hits(OIDC_PATHS.registration)).toBe(stepping.length)
    const logins = idp.grants.slice(before).map(({ grantType, resource }) => `${grantType} ${resource}`)
    world.expect(logins).toEqual(stepping.map(() => `${CODE} ${url}`))

    // From here on tokens are short: those of the step-up are the ones that are refreshed later.
    idp.accessTokenSeconds = 1
    await Promise.all(stepping.map((opened) => expectStepUp(world, opened)))
    const [first, ...others] = stepping
    await first?.client[Symbol.asyncDispose]() // it could only log in again

    const refreshing = [...others, await open(REFRESHES_ONLY)]
    const visits = refreshing.map(({ client }) => client.visits.length)
    const known = idp.grants.length
    idp.accessTokenSeconds = 3_600
    await systemClock.sleep(TOKEN_END_MS)
    for (const { row, client, report } of refreshing)
      world.expect([row.name, await reportOf(client)]).toEqual([row.name, { era: row.era, session: report.session }])
    const later = idp.grants.slice(known)
    world.expect(new Set(later.map(({ grantType }) => grantType))).toEqual(new Set([REFRESH]))
    world.expect(new Set(later.map(({ clientId }) => clientId)).size).toBe(refreshing.length)
    world.expect(refreshing.map(({ client }) => client.visits.length)).toEqual(visits)
  },
}

interface Opened {
  readonly row: Row
  readonly client: OAuthClient
  readonly report: Report
}

interface Report {
  readonly era: string
  readonly session: string | null
}

/** The clients insist on TLS at the provider. This process trusts the authority until the end of the story; the file is for others. */
async function trusted(ca: string, stack: AsyncDisposableStack): Promise<string> {
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, ca])
  stack.defer(() => setDefaultCACertificates(before))
  const folder = await mkdtemp(join(tmpdir(), 'thv-story-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'ca.crt')
  await writeFile(file, ca)
  return file
}

/** Everybody may call everything but `echo`, which needs a scope. */
async function guardedServer(world: World, { idp, ca }: { idp: OidcServer; ca: string }): Promise<string> {
  await world.client.create(configMaps, { metadata: world.at('provider-ca'), data: { 'ca.crt': ca } })
  const inline = {
    ...{ issuer: idp.issuer, audience: AUDIENCE, scopes: ['mcp'], caBundleRef: { configMapRef: { name: 'provider-ca', key: 'ca.crt' } } },
    ...{ jwksAllowPrivateIP: true, protectedResourceAllowPrivateIP: true },
  }
  const policies = [
    'permit(principal, action, resource) unless { resource == Tool::"echo" };',
    '@scope("files:write") permit(principal, action, resource == Tool::"echo");',
  ]
  await world.create(SERVER, 'people', {
    ...{ image: world.images.fixture, transport: 'streamable-http' },
    oidcConfig: { type: 'inline', inline },
    authzConfig: { type: 'inline', inline: { policies } },
  })
  const { url } = await world.reaches(SERVER, 'people', 'Running')
  const outside = await world.outside(url)
  // The way to the proxy, its keys and the server may take a moment.
  const token = await idp.token({ claims: { sub: 'first' } })
  await world.eventually('the server answers through the proxy', async () => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'story', version: '1' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    const answer = await fetch(outside, { method: 'POST', headers, body, signal: AbortSignal.timeout(60_000) })
    await answer.body?.cancel()
    return answer.status === 200
  })
  return outside
}

function expectLogin({ expect }: World, { row, client, report }: Opened, url: string): void {
  expect([row.name, report.era]).toEqual([row.name, row.era])
  if (row.era === 'legacy') expect([row.name, report.session]).toEqual([row.name, expect.stringMatching(/./)])
  expect([row.name, client.visits.length]).toEqual([row.name, 1])
  const asked = Object.fromEntries(client.visits[0]?.searchParams ?? [])
  expect([row.name, asked]).toEqual([
    row.name,
    expect.objectContaining({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: url,
      scope: expect.stringMatching(/\bmcp\b/),
    }),
  ])
  expect([row.name, asked['scope']]).toEqual([row.name, expect.not.stringContaining('files:write')])
}

/** The tool is listed, and a call of it sends the user to the provider once more. The session is the same afterwards. */
async function expectStepUp({ expect }: World, { row, client, report }: Opened): Promise<void> {
  expect([row.name, await client.tools()]).toEqual([row.name, expect.arrayContaining(['echo'])])
  expect([row.name, client.visits.length]).toEqual([row.name, 1])
  const echoed = await client.call('echo', { text: 'with more rights' })
  expect([row.name, echoed.content[0]?.text]).toEqual([row.name, expect.stringContaining('with more rights')])
  expect([row.name, client.visits.length]).toEqual([row.name, 2])
  expect([row.name, client.visits[1]?.searchParams.get('scope')]).toEqual([row.name, expect.stringContaining('files:write')])
  expect([row.name, (await reportOf(client)).session]).toEqual([row.name, report.session])
}

async function reportOf(client: OAuthClient): Promise<Report> {
  const { content } = await client.call('report_request')
  const text = content[0]?.text ?? ''
  if (/bearer/i.test(text)) throw new Error('the server got the token of the client')
  const { era, session } = JSON.parse(text) as Report
  return { era, session }
}
