import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { secrets } from '@thv/kube'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { isActiveAt, logIn, registerAt } from '@thv/testkit/oidc/log-in'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { runThv } from '../../../apps/cli/src/testing/run-thv.ts'
import { connect, type McpClient, namesOf } from './clients.ts'
import { openTunnel } from './loopback-tunnel.ts'
import type { Story } from './story.ts'
import { ENTRY, EXTERNAL_AUTH, GROUP, VIRTUAL, type World } from './world.ts'

const SAAS = ['tickets', 'chat'] as const
const LIMIT_MS = 60_000

export const oneLogin: Story = {
  title:
    'one login at a VirtualMCPServer: each of three backends gets the token of its own provider or none, thv call logs its user in, and a provider that is down fails alone',
  proves: [],
  async tell(world) {
    await using stack = new AsyncDisposableStack()
    const start = async () => stack.use(await startOidcServer({ host: world.hostAddress }))
    const idps = { corp: await start(), tickets: await start(), chat: await start() }
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
    const issuer = await openDoor(world, idps, stack)
    const { accessToken } = await logIn(issuer, { user: 'ada', scope: 'openid mcp' })
    await using client = await connect('v2', `${issuer}/mcp`, { authorization: `Bearer ${accessToken}` })
    const wanted = [...SAAS, 'open'].map((name) => `${name}_report_request`)
    await world.eventually('the tools of all backends are listed', async () => {
      const names = namesOf(await client.tools())
      return wanted.every((name) => names.includes(name))
    })
    for (const name of SAAS) world.expect(await isActiveAt(idps[name], (await tokenAt(client, name)) ?? '')).toBe(true)
    world.expect(await tokenAt(client, 'open')).toBeUndefined()
    await callWithThv(world, `${issuer}/mcp`)

    // The same user again, with a token that is old soon, from a provider that goes away.
    idps.chat.accessTokenSeconds = 1
    await logIn(issuer, { user: 'ada', scope: 'openid mcp' })
    idps.chat.fault = 'down'
    await world.eventually('the backend of the provider that is down cannot be called', () =>
      tokenAt(client, 'chat').then(
        () => false,
        () => true,
      ),
    )
    world.expect(await isActiveAt(idps.tickets, (await tokenAt(client, 'tickets')) ?? '')).toBe(true)
    world.expect(await tokenAt(client, 'open')).toBeUndefined()
  },
}

/** The first call opens the browser, the second needs none. */
async function callWithThv({ expect }: World, url: string): Promise<void> {
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
      const run = await runThv(['call', url, 'open_add_numbers', ...numbers], { variables: { HOME: home }, openBrowser })
      expect(run).toMatchObject({ error: undefined, out: `${sum}\n` })
    }
    expect(visits).toHaveLength(1)
  } finally {
    await rm(home, { recursive: true })
  }
}

/**
 * The address is part of the settings of the login, so the server is there before it asks for one. Returns the address: one of this machine's
 * loopback, because thv gives no token to another address without TLS.
 */
async function openDoor(world: World, idps: Readonly<Record<string, OidcServer>>, stack: AsyncDisposableStack): Promise<string> {
  const { client, at, expect } = world
  const spec = { groupRef: { name: 'desk' }, incomingAuth: { type: 'anonymous' }, outgoingAuth: { source: 'inline' } }
  await world.create(VIRTUAL, 'door', spec)
  const { url } = await world.reaches(VIRTUAL, 'door', 'Ready')
  const { origin: issuer } = stack.use(await openTunnel(new URL(await world.outside(url))))
  const resourceUrl = `${issuer}/mcp`
  const upstreamProviders: object[] = []
  for (const [name, idp] of Object.entries(idps)) {
    const { client_id: clientId, client_secret } = await registerAt(idp, issuer, name)
    await client.create(secrets, { metadata: at(`${name}-client`), stringData: { secret: client_secret } } as never)
    const oauth2Config = {
      ...{ authorizationEndpoint: `${idp.issuer}/auth`, tokenEndpoint: idp.tokenUrl, clientId, scopes: ['openid'] },
      ...{ clientSecretRef: { name: `${name}-client`, key: 'secret' }, redirectUri: `${issuer}/oauth/callback/${name}` },
      ...{ userInfo: { endpointUrl: `${idp.issuer}/me` }, allowPrivateIPs: true, insecureAllowHTTP: true },
    }
    upstreamProviders.push({ name, type: 'oauth2', oauth2Config })
  }
  const inline = { issuer, audience: resourceUrl, scopes: ['openid', 'mcp'], insecureAllowHTTP: true }
  const body = {
    spec: {
      incomingAuth: { type: 'oidc', oidcConfig: { type: 'inline', resourceUrl, inline } },
      authServerConfig: { issuer, insecureAllowHTTP: true, upstreamProviders },
    },
  }
  await client.patch(VIRTUAL, at('door'), { kind: 'merge', body })
  await world.eventually('the server asks for a login', async () => {
    const answer = await fetch(`${issuer}/.well-known/oauth-authorization-server`, { signal: AbortSignal.timeout(LIMIT_MS) })
    return answer.status === 200 && ((await answer.json()) as { issuer: string }).issuer === issuer
  })
  // The old pods are gone, too.
  await world.eventually('requests without a token are refused', async () => {
    const answer = await fetch(resourceUrl, { method: 'POST', body: '{}', signal: AbortSignal.timeout(LIMIT_MS) })
    return answer.status === 401
  })
  await world.reaches(VIRTUAL, 'door', 'Ready')
  expect(await client.tryGet(secrets, at('door-authserver-vmcp'))).toBeDefined()
  return issuer
}

/** The token that the backend gets. */
async function tokenAt(client: McpClient, backend: string): Promise<string | undefined> {
  const { structuredContent, isError } = await client.call(`${backend}_report_request`)
  if (isError) throw new Error(`${backend} cannot be called`)
  const { headers } = structuredContent as { headers: Record<string, string | undefined> }
  return headers['authorization']?.replace(/^Bearer /, '')
}
