import { readFileSync } from 'node:fs'
import { type ConfigMap, configMaps, serviceAccounts } from '@thv/kube'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import type { Story } from './story.ts'
import { REMOTE, SERVER, type World } from './world.ts'

const AUDIENCE = 'story'
const EXAMPLE = 'with-configmap-oidc'
const EXAMPLE_RESOURCE = 'https://mcp.example.com/orders'
const LIMIT_MS = 60_000

export const incomingIdentity: Story = {
  title: 'clients need a token: of a service account of the cluster, or of an identity provider and for the right audience',
  proves: ['002-064', '002-075', '002-107', '002-289'],
  async tell(world) {
    await using idp = await startOidcServer({ host: world.hostAddress })
    await using other = await startOidcServer({ host: world.hostAddress })
    await using remote = await startFixture({ host: world.hostAddress, name: 'far away' })
    const inline = {
      ...{ issuer: idp.issuer, audience: AUDIENCE, insecureAllowHTTP: true },
      ...{ jwksAllowPrivateIP: true, protectedResourceAllowPrivateIP: true },
    }
    const { fixture: image } = world.images
    await world.create(SERVER, 'accounts', { image, transport: 'streamable-http', oidcConfig: { type: 'kubernetes' } })
    await world.create(SERVER, 'people', { image, oidcConfig: { type: 'inline', inline } })
    await world.create(REMOTE, 'far', { remoteUrl: remote.url, oidcConfig: { type: 'inline', inline } })
    await applyExample(world, idp.issuer)
    for (const name of ['accounts', 'people', EXAMPLE]) await world.reaches(SERVER, name, 'Running')
    await world.reaches(REMOTE, 'far', 'Ready')
    const urls = await Promise.all(['accounts', 'people', 'far', EXAMPLE].map((name) => urlOf(world, name)))
    const [accounts = '', people = '', far = '', example = ''] = urls

    for (const url of urls) {
      const answer = await settled(url, undefined)
      world.expect([url, answer.status]).toEqual([url, 401])
      world
        .expect(answer.headers.get('www-authenticate'))
        .toContain(`resource_metadata="${new URL(url === example ? EXAMPLE_RESOURCE : url).origin}/.well-known/`)
      const path = `/.well-known/oauth-protected-resource${url === example ? '/orders' : '/mcp'}`
      const metadata = await fetch(new URL(path, url), { signal: AbortSignal.timeout(LIMIT_MS) })
      world.expect(await metadata.json()).toMatchObject({ resource: url === example ? EXAMPLE_RESOURCE : url })
    }

    const good = await idp.token({ audience: AUDIENCE, claims: { sub: 'ada' } })
    for (const url of [people, far, example]) {
      const audience = url === example ? 'mcp' : AUDIENCE
      const fitting = await idp.token({ audience, claims: { sub: 'ada' } })
      world.expect([url, (await settled(url, fitting)).status]).toEqual([url, 200])
      const bad = [await idp.token({ audience: 'others' }), await other.token({ audience }), await accountToken(world, audience)]
      for (const token of bad) {
        const { status, headers } = await settled(url, token)
        world
          .expect([url, status, headers.get('www-authenticate')])
          .toEqual([url, 401, world.expect.stringContaining('error="invalid_token"')])
      }
    }
    world.expect((await settled(accounts, await accountToken(world, 'toolhive'))).status).toBe(200)
    world.expect((await settled(accounts, await accountToken(world, 'others'))).status).toBe(401)
    world.expect((await settled(accounts, good)).status).toBe(401)
    const seen = remote.stats.received.map(({ headers }) => headers?.authorization)
    world.expect(seen.filter((authorization) => authorization !== undefined)).toEqual([])
  },
}

/** The example as people get it; only the addresses of provider and image are those of the test. */
async function applyExample(world: World, issuer: string): Promise<void> {
  const file = new URL('../../../deploy/examples/operator/mcp-servers/mcpserver_with_configmap_oidc.yaml', import.meta.url)
  const [settings, server] = manifestsIn(readFileSync(file, 'utf8')) as unknown as [ConfigMap, { spec: { image: string } }]
  const reachable = { insecureAllowHTTP: 'true', jwksAllowPrivateIP: 'true', protectedResourceAllowPrivateIP: 'true' }
  const data = { ...settings.data, issuer, ...reachable }
  await world.client.create(configMaps, { metadata: world.at(settings.metadata.name), data })
  await world.create(SERVER, EXAMPLE, { ...server.spec, image: world.images.fixture })
}

async function urlOf(world: World, name: string): Promise<string> {
  const found = await world.client.get(name === 'far' ? REMOTE : SERVER, world.at(name))
  return await world.outside(found.status?.url)
}

/** As `kubectl create token default --audience AUDIENCE` gets it. */
async function accountToken({ client, at }: World, audience: string): Promise<string> {
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: at('default'), spec: { audiences: [audience] } }
  const made = (await client.create(serviceAccounts, request as never, { subresource: 'token' })) as unknown as {
    status: { token: string }
  }
  return made.status.token
}

/** The first answer that does not say to come back later: the way may not be there yet, nor the keys. */
async function settled(url: string, token: string | undefined): Promise<Response> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'story', version: '1' } }
  const init = {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  }
  const deadline = performance.now() + LIMIT_MS
  for (;;) {
    const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(LIMIT_MS) }).catch((error: unknown) => error)
    if (answer instanceof Response && (answer.status !== 503 || performance.now() > deadline)) {
      await answer.body?.cancel()
      return answer
    }
    if (performance.now() > deadline) throw answer
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}
