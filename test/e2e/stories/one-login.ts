import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { events, pods, secrets } from '@thv/kube'
import { podLogs } from '@thv/kube/streams/pod-logs'
import { startFixture } from '@thv/testkit/mcp/fixture'
import type { OAuthClient } from '@thv/testkit/oauth/oauth-client'
import { connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { isActiveAt, logIn, registerAt } from '@thv/testkit/oidc/log-in'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { runThv } from '../../../apps/cli/src/testing/run-thv.ts'
import { openTunnel } from './loopback-tunnel.ts'
import type { Story } from './story.ts'
import { ENTRY, EXTERNAL_AUTH, GROUP, SERVER, VIRTUAL, type World } from './world.ts'

const ON_DEMAND = ['tickets', 'chat'] as const
const SAAS = ['wiki', ...ON_DEMAND] as const
const LIMIT_MS = 60_000

type Idps = Readonly<Record<'corp' | (typeof SAAS)[number], OidcServer>>

export const oneLogin: Story = {
  title:
    'one login at a VirtualMCPServer: each backend gets the token of its own provider or none, the first call that needs a provider on demand leads to its login alone, a provider that is down fails alone, and thv call logs its user in, at an MCPServer too',
  proves: [],
  async tell(world) {
    await using stack = new AsyncDisposableStack()
    const start = async () => stack.use(await startOidcServer({ host: world.hostAddress }))
    const idps = { corp: await start(), wiki: await start(), tickets: await start(), chat: await start() }
    await world.create(GROUP, 'desk', {})
    for (const name of [...SAAS, 'open']) {
      const backend = stack.use(await startFixture({ host: world.hostAddress, name }))
      const isSaas = name !== 'open'
      if (isSaas) await world.create(EXTERNAL_AUTH, name, { type: 'upstreamInject', upstreamInject: { providerName: name } })
      await world.create(ENTRY, name, {
        ...{ remoteUrl: backend.url, transport: 'streamable-http', insecureAllowHTTP: true, groupRef: { name: 'desk' } },
        ...(isSaas && { externalAuthConfigRef: { name } }),
      })
    }
    const [issuer, direct] = await Promise.all([openDoor(world, idps, stack), openServer(world, idps.corp, stack)])
    const cookies = new Map<string, string>()
    const options = { url: `${issuer}/mcp`, user: 'ada', era: 'modern', grantTypes: ['authorization_code'], cookies } as const
    await using client = await connectV2(options)
    await world.eventually('the tools of the backends without a further login are listed', async () => {
      const names = await client.tools()
      return ['wiki', 'open'].every((name) => names.includes(`${name}_report_request`))
    })
    await expectTokenOf(world, client, idps, 'wiki')
    world.expect(await tokenAt(client, 'open_report_request')).toBeUndefined()
    world.expect(visitsOf(idps, ON_DEMAND)).toEqual([0, 0])
    await expectLoginsOnDemand(world, client, idps)
    world.expect(await tokenAt(client, 'open_report_request')).toBeUndefined()

    await callWithThv(world, `${issuer}/mcp`, 'open_add_numbers')
    await callWithThv(world, `${direct}/mcp`, 'add_numbers')
    await using asAda = await connectV2({ ...options, url: `${direct}/mcp`, cookies: new Map() })
    world.expect(await isActiveAt(idps.corp, (await tokenAt(asAda, 'report_request')) ?? '')).toBe(true)

    // The same user again, with a token that is old soon, from a provider that goes away.
    idps.chat.accessTokenSeconds = 1
    const { accessToken, refreshToken = '' } = await logIn(issuer, { user: 'ada', scope: 'openid mcp upstream:chat' })
    idps.chat.fault = 'down'
    await world.eventually('the backend of the provider that is down cannot be called', () =>
      tokenAt(client, 'chat_report_request').then(
        () => false,
        () => true,
      ),
    )
    const tokens = [accessToken, refreshToken]
    for (const name of ['wiki', 'tickets'] as const) tokens.push(await expectTokenOf(world, client, idps, name))
    world.expect(await tokenAt(client, 'open_report_request')).toBeUndefined()
    await expectNothingTold(world, tokens)
  },
}

/** Each first call sends the user to the authorization server once more, with one scope more, and from there to that provider and to no other. */
async function expectLoginsOnDemand(world: World, client: OAuthClient, idps: Idps): Promise<void> {
  const { expect } = world
  const scopes = ['mcp', 'openid']
  for (const name of ON_DEMAND) {
    const before = {
      visits: client.visits.length,
      others: visitsOf(idps, othersThan(name)),
      own: idps[name].hits(OIDC_PATHS.authorization),
    }
    await expectTokenOf(world, client, idps, name)
    expect([name, client.visits.length]).toEqual([name, before.visits + 1])
    scopes.push(`upstream:${name}`)
    expect(client.visits.at(-1)?.searchParams.get('scope')?.split(' ').toSorted()).toEqual(scopes.toSorted())
    expect([name, visitsOf(idps, othersThan(name))]).toEqual([name, before.others])
    expect(idps[name].hits(OIDC_PATHS.authorization)).toBeGreaterThan(before.own)
    // The next call needs none.
    await expectTokenOf(world, client, idps, name)
    expect([name, client.visits.length]).toEqual([name, before.visits + 1])
  }
}

function othersThan(name: string): readonly (keyof Idps)[] {
  return (['corp', ...SAAS] as const).filter((each) => each !== name)
}

/** How often browsers were sent to each of them. */
function visitsOf(idps: Idps, names: readonly (keyof Idps)[]): number[] {
  return names.map((name) => idps[name].hits(OIDC_PATHS.authorization))
}

async function expectTokenOf({ expect }: World, client: OAuthClient, idps: Idps, name: (typeof SAAS)[number]): Promise<string> {
  const token = (await tokenAt(client, `${name}_report_request`)) ?? ''
  expect([name, await isActiveAt(idps[name], token)]).toEqual([name, true])
  return token
}

/** No status, event or log line of the namespace holds a token, or a line of a Secret. */
async function expectNothingTold({ client, namespace, expect }: World, tokens: readonly string[]): Promise<void> {
  const stored = (await client.list(secrets, { namespace })).items.flatMap(({ data = {} }) =>
    Object.values(data).flatMap((value) => [value, ...Buffer.from(value, 'base64').toString().split('\n')]),
  )
  const hidden = [...tokens, ...stored].filter((text) => text.length >= 16 && !text.startsWith('-----'))
  expect(hidden.length).toBeGreaterThan(20)
  const told: string[] = []
  for (const type of [VIRTUAL, SERVER, EXTERNAL_AUTH, ENTRY, events]) told.push(JSON.stringify(await client.list(type, { namespace })))
  for (const { metadata } of (await client.list(pods, { namespace })).items.filter((pod) => pod.metadata.deletionTimestamp === undefined)) {
    const chunks: Uint8Array[] = []
    for await (const chunk of podLogs(client, { namespace, pod: metadata.name })) chunks.push(chunk)
    told.push(Buffer.concat(chunks).toString())
  }
  expect(told.some((text) => text.includes('consent given'))).toBe(true)
  expect(hidden.filter((secret) => told.some((text) => text.includes(secret)))).toEqual([])
}

/** The first call opens the browser, the second needs none. */
async function callWithThv({ expect }: World, url: string, tool: string): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'thv-story-login-'))
  const visits: string[] = []
  const openBrowser = (address: string) => {
    visits.push(address)
    signIn(address, { user: 'ada', redirectUri: new URL(address).searchParams.get('redirect_uri') ?? '' })
      .then((back) => fetch(back, { signal: AbortSignal.timeout(LIMIT_MS) }))
      .catch((error: unknown) => console.error(error))
  }
  try {
    for (const sum of ['42', '5']) {
      const numbers = [`a=${Number(sum) - 2}`, 'b=2']
      const run = await runThv(['call', url, tool, ...numbers], { variables: { HOME: home }, openBrowser })
      expect(run).toMatchObject({ error: undefined, out: `${sum}\n` })
    }
    expect(visits).toHaveLength(1)
  } finally {
    await rm(home, { recursive: true })
  }
}

/**
 * A virtual server that runs open first, and asks for a login from then on. Returns its address: one of this machine's loopback, because thv gives no
 * token to another address without TLS.
 */
async function openDoor(world: World, { corp, wiki, tickets, chat }: Idps, stack: AsyncDisposableStack): Promise<string> {
  const { client, at, expect } = world
  const tunnel = stack.use(await openTunnel())
  const { origin: issuer } = tunnel
  const resourceUrl = `${issuer}/mcp`
  const spec = { groupRef: { name: 'desk' }, incomingAuth: { type: 'anonymous' }, outgoingAuth: { source: 'inline' } }
  await world.create(VIRTUAL, 'door', spec)
  const { url } = await world.reaches(VIRTUAL, 'door', 'Ready')
  tunnel.leadTo(new URL(await world.outside(url)))
  const upstreamProviders: object[] = []
  for (const [name, idp] of Object.entries({ corp, wiki })) upstreamProviders.push(await providerAt(world, idp, { issuer, name }))
  for (const [name, idp] of Object.entries({ tickets, chat }))
    upstreamProviders.push({ ...(await providerAt(world, idp, { issuer, name })), loginPolicy: 'onDemand' })
  const body = {
    spec: {
      incomingAuth: { type: 'oidc', oidcConfig: oidcConfigOf(issuer) },
      authServerConfig: { issuer, insecureAllowHTTP: true, upstreamProviders },
    },
  }
  await client.patch(VIRTUAL, at('door'), { kind: 'merge', body })
  await asksForLogin(world, issuer)
  // The old pods are gone, too.
  await world.eventually('requests without a token are refused', async () => {
    const answer = await fetch(resourceUrl, { method: 'POST', body: '{}', signal: AbortSignal.timeout(LIMIT_MS) })
    return answer.status === 401
  })
  await world.reaches(VIRTUAL, 'door', 'Ready')
  expect(await client.tryGet(secrets, at('door-authserver-vmcp'))).toBeDefined()
  return issuer
}

/** An MCPServer that asks for a login from its start. */
async function openServer(world: World, corp: OidcServer, stack: AsyncDisposableStack): Promise<string> {
  const tunnel = stack.use(await openTunnel())
  const { origin: issuer } = tunnel
  const upstreamProviders = [await providerAt(world, corp, { issuer, name: 'direct' })]
  await world.create(EXTERNAL_AUTH, 'direct', {
    ...{ type: 'embeddedAuthServer', embeddedAuthServer: { issuer, insecureAllowHTTP: true, upstreamProviders } },
  })
  await world.create(SERVER, 'direct', {
    ...{ image: world.images.fixture, transport: 'streamable-http' },
    ...{ oidcConfig: oidcConfigOf(issuer), externalAuthConfigRef: { name: 'direct' } },
  })
  const { url } = await world.reaches(SERVER, 'direct', 'Running')
  tunnel.leadTo(new URL(await world.outside(url)))
  await asksForLogin(world, issuer)
  world.expect(await world.client.tryGet(secrets, world.at('direct-authserver'))).toBeDefined()
  return issuer
}

function oidcConfigOf(issuer: string): object {
  const resourceUrl = `${issuer}/mcp`
  return { type: 'inline', resourceUrl, inline: { issuer, audience: resourceUrl, scopes: ['openid', 'mcp'], insecureAllowHTTP: true } }
}

/** A provider of an authorization server, with the Secret of the client that is registered there. */
async function providerAt({ client, at }: World, idp: OidcServer, { issuer, name }: { issuer: string; name: string }): Promise<object> {
  const { client_id: clientId, client_secret } = await registerAt(idp, issuer, name)
  await client.create(secrets, { metadata: at(`${name}-client`), stringData: { secret: client_secret } } as never)
  const oauth2Config = {
    ...{ authorizationEndpoint: `${idp.issuer}/auth`, tokenEndpoint: idp.tokenUrl, clientId, scopes: ['openid'] },
    ...{ clientSecretRef: { name: `${name}-client`, key: 'secret' }, redirectUri: `${issuer}/oauth/callback/${name}` },
    ...{ userInfo: { endpointUrl: `${idp.issuer}/me` }, allowPrivateIPs: true, insecureAllowHTTP: true },
  }
  return { name, type: 'oauth2', oauth2Config }
}

async function asksForLogin(world: World, issuer: string): Promise<void> {
  await world.eventually(`${issuer} asks for a login`, async () => {
    const answer = await fetch(`${issuer}/.well-known/oauth-authorization-server`, { signal: AbortSignal.timeout(LIMIT_MS) })
    return answer.status === 200 && ((await answer.json()) as { issuer: string }).issuer === issuer
  })
}

/** The token that the backend gets. Throws where it cannot be called. */
async function tokenAt(client: OAuthClient, tool: string): Promise<string | undefined> {
  const { content } = await client.call(tool)
  const { headers } = JSON.parse(content[0]?.text ?? '') as { headers: Record<string, string | undefined> }
  return headers['authorization']?.replace(/^Bearer /, '')
}
