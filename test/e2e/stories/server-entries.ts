import { configMaps, secrets } from '@thv/kube'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { connect, type McpClient, namesOf, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { tlsBefore } from './tls-before.ts'
import { ENTRY, EXTERNAL_AUTH, GROUP, VIRTUAL, type World } from './world.ts'

const AUDIENCE = 'story'
/** `static` finds its backends in its file, `dynamic` watches the group. */
const MODES = { static: 'inline', dynamic: 'discovered' } as const
const SHARED_TOOLS = ['report_request', 'who_am_i']

interface Strategy {
  readonly strategy: string
  readonly settings?: object
  readonly tools: readonly string[]
  readonly ask: readonly [tool: string, args?: object]
  readonly answers: string
}

/** Strategies for tools of the same name: the list of a client, and the backend that answers `who_am_i`. */
const STRATEGIES: readonly Strategy[] = [
  {
    strategy: 'priority',
    settings: { priorityOrder: ['near', 'far'] },
    tools: ['echo', 'report_request', 'who_am_i'],
    ask: ['who_am_i'],
    answers: 'near',
  },
  {
    strategy: 'manual',
    settings: { winners: { who_am_i: 'far', report_request: 'near' } },
    tools: ['echo', 'report_request', 'who_am_i'],
    ask: ['who_am_i'],
    answers: 'far',
  },
  {
    strategy: 'prefixOnConflict',
    tools: ['echo', 'far_report_request', 'far_who_am_i', 'near_report_request', 'near_who_am_i'],
    ask: ['near_who_am_i'],
    answers: 'near',
  },
  {
    strategy: 'selector',
    tools: ['echo', 'report_request', 'who_am_i'],
    ask: ['who_am_i', { backend: 'far' }],
    answers: 'far',
  },
]

export const serverEntries: Story = {
  title:
    'two VirtualMCPServers, static and dynamic, over MCPServerEntries: a private CA, a header from a Secret, an exchanged token, every strategy, and a backend that dies and returns',
  proves: [],
  async tell(world) {
    await using idp = await startOidcServer({ host: world.hostAddress })
    await using far = await startFixture({ host: world.hostAddress, name: 'far', only: SHARED_TOOLS })
    const ca = createCertificate({ commonName: 'story CA', ca: true })
    await using secure = await tlsBefore(far.url, {
      address: world.hostAddress,
      certificate: createCertificate({ commonName: 'far', hosts: [world.hostAddress], issuer: ca }),
    })
    const near = await nearServer(world)
    try {
      await makeEntries(world, { idp, ca: ca.certPem, far: secure.url, near: near.url })
      for (const [name, source] of Object.entries(MODES)) await makeVirtualServer(world, { idp, name, source })
      const token = await idp.token({ audience: AUDIENCE, claims: { sub: 'ada' } })
      await using fixed = await open(world, 'static', token)
      await using found = await open(world, 'dynamic', token)
      world.expect(sorted(await found.tools())).toEqual(sorted(await fixed.tools()))
      for (const client of [fixed, found]) await expectCredentials(world, client, { idp, token })
      await expectStrategies(world, found)
      await expectOutage(world, fixed, near)
    } finally {
      await near.stop()
    }
  },
}

/** A server that can be ended and started again at the same address. */
async function nearServer({ hostAddress: host }: World) {
  // Not one that the system gives: it could give that to a connection while the server is away.
  const options = { host, port: await freePort(host), name: 'near', only: [...SHARED_TOOLS, 'echo'] }
  let running = await startFixture(options)
  const { url } = running
  return {
    url,
    stop: () => running.stop(),
    async start() {
      running = await startFixture(options)
    },
  }
}

async function makeEntries(world: World, { idp, ca, far, near }: { idp: OidcServer; ca: string; far: string; near: string }) {
  const { client, at } = world
  await client.create(configMaps, { metadata: at('trusted'), data: { 'ca.crt': ca } })
  await client.create(secrets, { metadata: at('keys'), stringData: { key: 'top secret', client: idp.clientSecret } })
  const tokenExchange = {
    ...{ clientId: idp.clientId, tokenUrl: idp.tokenUrl, audience: 'backend' },
    clientSecretRef: { name: 'keys', key: 'client' },
  }
  await world.create(EXTERNAL_AUTH, 'exchange', { type: 'tokenExchange', tokenExchange })
  await world.create(GROUP, 'outside', {})
  const entry = { transport: 'streamable-http', groupRef: { name: 'outside' } }
  await world.create(ENTRY, 'near', { ...entry, remoteUrl: near, insecureAllowHTTP: true })
  await world.create(ENTRY, 'far', {
    ...{ ...entry, remoteUrl: far, externalAuthConfigRef: { name: 'exchange' }, caBundleRef: { configMapRef: { name: 'trusted' } } },
    headerForward: { addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'keys', key: 'key' } }] },
  })
}

async function makeVirtualServer(world: World, { idp, name, source }: { idp: OidcServer; name: string; source: string }): Promise<void> {
  const inline = {
    ...{ issuer: idp.issuer, audience: AUDIENCE, insecureAllowHTTP: true },
    ...{ jwksAllowPrivateIP: true, protectedResourceAllowPrivateIP: true },
  }
  await world.create(VIRTUAL, name, {
    groupRef: { name: 'outside' },
    incomingAuth: { type: 'oidc', oidcConfig: { type: 'inline', inline } },
    outgoingAuth: { source },
    config: {
      operational: { failureHandling: { healthCheckInterval: '1s', unhealthyThreshold: 2, statusReportingInterval: '1s' } },
    },
  })
}

async function open(world: World, name: string, token: string): Promise<McpClient> {
  const { url } = await world.reaches(VIRTUAL, name, 'Ready')
  // The newer SDK keeps lists for as long as a server says.
  const client = await connect('v1', await world.outside(url), { authorization: `Bearer ${token}` })
  const wanted = ['far_report_request', 'far_who_am_i', 'near_echo', 'near_report_request', 'near_who_am_i']
  await world.eventually(`${name} lists the tools of both backends`, async () => isSame(namesOf(await client.tools()), wanted))
  return client
}

/** Only the backend that they are for gets them, and none gets the token of the caller. */
async function expectCredentials(world: World, client: McpClient, { idp, token }: { idp: OidcServer; token: string }): Promise<void> {
  const seen = async (backend: string) => {
    const { structuredContent } = await client.call(`${backend}_report_request`)
    return (structuredContent as { headers: Record<string, string | undefined> }).headers
  }
  const far = await seen('far')
  world.expect(far['x-api-key']).toBe('top secret')
  const payload = far['authorization']?.split('.')[1] ?? ''
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
  world.expect(claims).toMatchObject({ iss: idp.issuer, sub: 'ada', aud: 'backend' })
  const near = await seen('near')
  world.expect([near['authorization'], near['x-api-key']]).toEqual([undefined, undefined])
  world.expect(JSON.stringify([far, near])).not.toContain(token)
}

/** Each takes effect for a client that is connected. */
async function expectStrategies(world: World, client: McpClient): Promise<void> {
  for (const { strategy, settings, tools, ask, answers } of STRATEGIES) {
    const [tool, args = {}] = ask
    const conflictResolutionConfig = { priorityOrder: null, winners: null, ...settings }
    await world.edit(VIRTUAL, 'dynamic', { config: { aggregation: { conflictResolution: strategy, conflictResolutionConfig } } })
    await world.eventually(`the list is that of ${strategy}`, async () => {
      if (!isSame(namesOf(await client.tools()), tools)) throw new Error(namesOf(await client.tools()).join())
      const { name } = await whoAmI({ call: (called) => client.call(called, { ...args }) }, tool)
      return name === answers
    })
  }
}

/** A client keeps its list, and what it calls elsewhere works. */
async function expectOutage(world: World, client: McpClient, near: { stop(): Promise<void>; start(): Promise<void> }): Promise<void> {
  const before = sorted(await client.tools())
  await near.stop()
  await world.reaches(VIRTUAL, 'static', 'Degraded')
  world.expect(sorted(await client.tools())).toEqual(before)
  world.expect((await whoAmI(client, 'far_who_am_i')).name).toBe('far')
  await near.start()
  await world.reaches(VIRTUAL, 'static', 'Ready')
  world.expect(sorted(await client.tools())).toEqual(before)
  world.expect((await whoAmI(client, 'near_who_am_i')).name).toBe('near')
}

function sorted<T extends { readonly name: string }>(tools: readonly T[]): T[] {
  return tools.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function isSame(names: readonly string[], wanted: readonly string[]): boolean {
  return JSON.stringify(names.toSorted()) === JSON.stringify(wanted.toSorted())
}
