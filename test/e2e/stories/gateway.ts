import { type KubeObject, namespaces } from '@thv/kube'
import { podLogs } from '@thv/kube/streams/pod-logs'
import { installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { startTraefik } from '@thv/testkit/traefik/traefik'
import { ask, askWithPython, connect, whoAmI } from './clients.ts'
import { createGateway, createRoute, GRANT, gatewayClass, grantGateways, kubectl } from './gateway-objects.ts'
import { listedServers, waitForServers } from './registry-client.ts'
import type { Story } from './story.ts'
import { REGISTRY, SERVER, type World } from './world.ts'

const EXPORT = 'toolhive.stacklok.dev/registry-export'
const DESCRIPTION = 'toolhive.stacklok.dev/registry-description'
const PORT = 8080
const AUDIENCE = 'story'

export const gateway: Story = {
  title: 'servers behind a real gateway are listed by an annotation of their route, at URLs that official clients use',
  proves: ['000-096', '000-097', '000-098', '000-118', '000-119', '001-046'],
  needs: ['gateway'],
  async tell(world) {
    const { namespace, client } = world
    await installGatewayApi(client)
    await using foreign = await secondNamespace(world)
    await using idp = await startOidcServer({ host: world.hostAddress })
    await using _class = await gatewayClass(world)
    await using traefik = await startTraefik({
      kubeconfigPath: world.kubeconfigPath,
      namespaces: [namespace, foreign.name],
      publish: { ip: world.hostAddress },
    })
    await createServers(world, idp.issuer)
    await createGateway(world, world.at('public'), traefik.port)
    await createGateway(world, { namespace: foreign.name, name: 'shared' }, traefik.port)
    for (const name of ['web', 'old']) await route(world, name, { namespace, name: 'public' })
    await route(world, 'guarded', { namespace: foreign.name, name: 'shared' })
    await grantGateways(world, foreign.name, 'routes')
    await world.create(REGISTRY, 'live', { registries: [{ name: 'published', managed: {} }], export: {} })
    for (const name of ['web', 'old', 'guarded']) await world.reaches(SERVER, name, 'Running')
    await waitForServers(world, 'live', [])

    await kubectl(world, 'annotate', 'httproute', 'web', 'old', 'guarded', `${EXPORT}=true`)
    const base = (host: string) => `http://${host}:${traefik.port}/servers`
    const [first, second] = [base(world.hostAddress), base('localhost')]
    await listedAt(world, 'live', { web: `${first}/web`, old: `${first}/old` })
    // A new entry of the other mode needs a description.
    await kubectl(world, 'annotate', 'mcpserver', 'web', 'old', 'guarded', `${DESCRIPTION}=A server behind a gateway`)
    // The operator writes its export before the pod of this one starts.
    await world.create(REGISTRY, 'company', { registries: [{ name: 'published', managed: {} }], export: { mode: 'operator' } })
    await useAsClients(world, { web: `${first}/web`, old: `${first}/old` })
    for (const name of ['web', 'old']) world.expect([name, ...(await pathsSeenBy(world, name))]).toEqual([name, '/'])

    await listedAt(world, 'company', { web: `${first}/web`, old: `${first}/old`, guarded: `${first}/guarded` })
    await stillGuarded(world, `${first}/guarded`, await idp.token({ audience: AUDIENCE, claims: { sub: 'ada' } }))
    await client.delete(GRANT, { namespace: foreign.name, name: 'routes' })

    await traefik.republish({ hostname: 'localhost' })
    await listedAt(world, 'live', { web: `${second}/web`, old: `${second}/old` })
    world.expect((await ask(`${second}/web`, 'who_am_i')).structuredContent).toMatchObject({ name: 'web' })
    // In the other mode too, and without the route that lost its grant.
    await listedAt(world, 'company', { web: `${second}/web`, old: `${second}/old`, guarded: undefined })

    await kubectl(world, 'annotate', 'httproute', 'web', `${EXPORT}-`)
    for (const registry of ['live', 'company']) await listedAt(world, registry, { web: undefined, old: `${second}/old` })
    world.expect((await ask(`${second}/web`, 'who_am_i')).structuredContent).toMatchObject({ name: 'web' })
  },
}

async function createServers(world: World, issuer: string): Promise<void> {
  const { fixture: image } = world.images
  // The names by which the gateway is called, which it passes on.
  const common = { image, audit: { enabled: true }, proxyPort: PORT, allowedHosts: [world.hostAddress, 'localhost'] }
  await world.create(SERVER, 'web', { ...common, transport: 'streamable-http', args: ['--name', 'web'] })
  await world.create(SERVER, 'old', { ...common, transport: 'sse', args: ['--name', 'old'] })
  const inline = {
    ...{ issuer, audience: AUDIENCE, insecureAllowHTTP: true },
    ...{ jwksAllowPrivateIP: true, protectedResourceAllowPrivateIP: true },
  }
  const policies = ['permit(principal, action == Action::"call_tool", resource == Tool::"echo");']
  await world.create(SERVER, 'guarded', {
    ...common,
    transport: 'streamable-http',
    oidcConfig: { type: 'inline', inline },
    authzConfig: { type: 'inline', inline: { policies } },
  })
}

function route(world: World, name: string, to: { namespace: string; name: string }, server = name): Promise<void> {
  return createRoute(world, { name, gateway: to, path: `/servers/${name}`, service: `mcp-${server}-proxy`, port: PORT })
}

const TYPES: Readonly<Record<string, string>> = { old: 'sse' }

/** Waits until the registry lists these servers at exactly these URLs; undefined: not at all. */
async function listedAt(world: World, registry: string, urls: Readonly<Record<string, string | undefined>>): Promise<void> {
  await world.eventually(`${registry} lists ${JSON.stringify(urls)}`, async () => {
    const servers = await listedServers(world, registry)
    for (const [name, url] of Object.entries(urls)) {
      const found = servers.find((server) => server.name === `dev.stacklok.toolhive/${world.namespace}.${name}`)
      const wanted = url === undefined ? undefined : [{ type: TYPES[name] ?? 'streamable-http', url }]
      world.expect([name, found?.remotes]).toEqual([name, wanted])
    }
    return true
  })
}

/** The official clients, at the URLs that the registry gave. */
async function useAsClients(world: World, urls: { readonly web: string; readonly old: string }): Promise<void> {
  for (const [sdk, name] of [
    ['v1', 'web'],
    ['v2', 'web'],
    ['sse', 'old'],
  ] as const) {
    await using client = await connect(sdk, urls[name])
    world.expect((await whoAmI(client)).name).toBe(name)
    world.expect((await client.call('echo', { message: sdk })).structuredContent).toEqual({ arguments: { message: sdk } })
  }
  for (const [mode, name] of [
    ['auto', 'web'],
    ['legacy', 'web'],
    ['sse', 'old'],
  ] as const) {
    const { tools, texts } = await askWithPython(urls[name], { tool: 'echo', args: { message: mode }, mode })
    world.expect(tools).toContain('echo')
    world.expect(texts.join('')).toContain(mode)
  }
}

/** Paths in the audit log of the proxy: what the gateway forwarded. */
async function pathsSeenBy(world: World, name: string): Promise<string[]> {
  const [pod] = await world.proxyPods(name)
  const chunks: Uint8Array[] = []
  for await (const chunk of podLogs(world.client, { namespace: world.namespace, pod: pod?.metadata.name ?? '' })) chunks.push(chunk)
  const lines = Buffer.concat(chunks).toString().split('\n')
  const events = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { target?: { endpoint?: string } })
  return [...new Set(events.flatMap(({ target }) => (target?.endpoint ? [target.endpoint] : [])))]
}

/** Being listed opens nothing: token and policies count at the listed URL too. */
async function stillGuarded(world: World, url: string, token: string): Promise<void> {
  for (const authorization of [undefined, 'Bearer nonsense']) {
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...(authorization !== undefined && { authorization }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      signal: AbortSignal.timeout(60_000),
    })
    await answer.body?.cancel()
    world.expect([authorization, answer.status]).toEqual([authorization, 401])
  }
  await using caller = await connect('v1', url, { authorization: `Bearer ${token}` })
  world.expect((await caller.call('echo', { message: 'ada' })).structuredContent).toEqual({ arguments: { message: 'ada' } })
  await world.expect(caller.call('who_am_i')).rejects.toThrow(/Unauthorized/)
}

async function secondNamespace({ client, namespace }: World): Promise<AsyncDisposable & { readonly name: string }> {
  const name = `${namespace}-gateways`
  await client.create(namespaces, { metadata: { name } } as KubeObject)
  return { name, [Symbol.asyncDispose]: async () => void (await client.delete(namespaces, { name })) }
}
