import { randomBytes } from 'node:crypto'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { secrets } from '@thv/kube'
import { podLogs } from '@thv/kube/streams/pod-logs'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { type OtlpReceiver, startOtlpReceiver } from '@thv/testkit/otlp/otlp-receiver'
import type { Story } from './story.ts'
import { EXTERNAL_AUTH, REMOTE, SERVER, type World } from './world.ts'

const AUDIENCE = 'story'
const BUCKET = 3
const NO_TOOL = 'no_such_tool'
const OVER_HTTP = [
  ['web', SERVER],
  ['far', REMOTE],
] as const

export const protectedServers: Story = {
  title:
    'servers over streamable HTTP, over stdio and far away, each with identity, policies, limits, audit and traces, and with credentials of every type',
  proves: ['002-036', '002-037', '002-109', '002-203', '002-225'],
  async tell(world) {
    await using idp = await startOidcServer({ host: world.hostAddress })
    await using collector = await startOtlpReceiver({ host: world.hostAddress })
    await using remote = await startFixture({ host: world.hostAddress, name: 'far away' })
    await makeCredentials(world, idp)
    const guards = guardsOf(idp, collector)
    const externalAuthConfigRef = { name: 'exchange' }
    const { fixture: image } = world.images
    await world.create(SERVER, 'web', { image, transport: 'streamable-http', ...guards, externalAuthConfigRef })
    await world.create(SERVER, 'piped', { image, ...guards })
    await world.create(REMOTE, 'far', { remoteUrl: remote.url, ...guards, externalAuthConfigRef })
    for (const name of ['web', 'piped']) await world.reaches(SERVER, name, 'Running')
    await world.reaches(REMOTE, 'far', 'Ready')

    const [ada, bob, eve] = await Promise.all(['ada', 'bob', 'eve'].map((sub) => idp.token({ audience: AUDIENCE, claims: { sub } })))
    for (const name of ['web', 'piped', 'far']) await expectGuards(world, name, { ada, bob, eve } as Tokens)
    await expectExchange(world, idp, { ada, eve } as Tokens)
    await expectTraces(world, collector, ada ?? '')
    await expectAudit(world, collector, [ada, bob, eve])
    await expectOtherCredentials(world, idp, ada ?? '')
  },
}

interface Tokens {
  readonly ada: string
  readonly bob: string
  readonly eve: string
}

function guardsOf(idp: OidcServer, collector: OtlpReceiver) {
  const inline = {
    ...{ issuer: idp.issuer, audience: AUDIENCE, insecureAllowHTTP: true },
    ...{ jwksAllowPrivateIP: true, protectedResourceAllowPrivateIP: true },
  }
  const policies = [
    ...['echo', 'report_request'].map((tool) => `permit(principal == Client::"ada", action, resource == Tool::"${tool}");`),
    'permit(principal == Client::"bob", action, resource == Tool::"who_am_i");',
  ]
  const openTelemetry = {
    ...{ enabled: true, endpoint: collector.endpoint, insecure: true },
    ...{ tracing: { enabled: true, samplingRate: '1' }, metrics: { enabled: true } },
  }
  return {
    oidcConfig: { type: 'inline', inline },
    authzConfig: { type: 'inline', inline: { policies } },
    rateLimiting: { tools: [{ name: 'echo', perUser: { maxTokens: BUCKET, refillPeriod: '24h' } }] },
    audit: { enabled: true, otlp: true },
    telemetry: { openTelemetry },
  }
}

async function makeCredentials(world: World, idp: OidcServer): Promise<void> {
  const { client, at } = world
  const stringData = { key: 'top secret', bearer: 'for-the-backend', client: idp.clientSecret }
  await client.create(secrets, { metadata: at('backend'), stringData })
  const secret = (key: string) => ({ name: 'backend', key })
  const own = { clientId: idp.clientId, clientSecretRef: secret('client'), tokenUrl: idp.tokenUrl }
  await world.create(EXTERNAL_AUTH, 'exchange', { type: 'tokenExchange', tokenExchange: { ...own, audience: 'backend' } })
  const headerInjection = { headerName: 'X-Api-Key', valueSecretRef: secret('key') }
  await world.create(EXTERNAL_AUTH, 'header', { type: 'headerInjection', headerInjection })
  await world.create(EXTERNAL_AUTH, 'bearer', { type: 'bearerToken', bearerToken: { tokenSecretRef: secret('bearer') } })
  await world.create(EXTERNAL_AUTH, 'client', { type: 'clientCredentials', clientCredentials: { ...own, resource: 'urn:thv:tests' } })
}

/** Each user sees and calls their own tools; what is denied takes nothing from a bucket; a full bucket and a denial have different answers. */
async function expectGuards(world: World, name: string, { ada, bob, eve }: Tokens): Promise<void> {
  const { expect } = world
  const url = await urlOf(world, name)
  expect((await new WireClient(url).initialize()).status).toBe(401)
  const of = async (token: string) => await opened(world, url, token)
  const [asAda, asBob, asEve] = [await of(ada), await of(bob), await of(eve)]
  expect([name, await toolsOf(asAda)]).toEqual([name, ['echo', 'report_request']])
  expect([name, await toolsOf(asBob)]).toEqual([name, ['who_am_i']])
  expect([name, await toolsOf(asEve)]).toEqual([name, []])
  const statuses = async (client: WireClient, tool: string, count = 1) => {
    const all: number[] = []
    for (let i = 0; i < count; i++) all.push((await client.call(tool)).status)
    return all
  }
  expect([name, await statuses(asBob, 'echo', BUCKET + 1)]).toEqual([name, Array.from({ length: BUCKET + 1 }, () => 403)])
  const [denied, unknown] = [await asBob.call('echo'), await asBob.call(NO_TOOL)]
  expect([name, unknown.status, unknown.messages.at(-1).error]).toEqual([name, denied.status, denied.messages.at(-1).error])
  expect([name, await statuses(asAda, 'who_am_i'), await statuses(asBob, 'who_am_i')]).toEqual([name, [403], [200]])
  expect([name, await statuses(asAda, 'echo', BUCKET + 1)]).toEqual([name, [...Array.from({ length: BUCKET }, () => 200), 429]])
}

/** The token of the caller does not leave the proxy; a call that is denied costs the provider nothing. */
async function expectExchange(world: World, idp: OidcServer, { ada, eve }: Pick<Tokens, 'ada' | 'eve'>): Promise<void> {
  const { expect } = world
  for (const [name] of OVER_HTTP) {
    const seen = await headersSeen(world, name, ada)
    expect(claimsOf(seen['authorization'])).toMatchObject({ iss: idp.issuer, sub: 'ada', aud: 'backend' })
    expect(JSON.stringify(seen)).not.toContain(ada)
  }
  const stranger = await idp.token({ audience: AUDIENCE, claims: { sub: 'stranger' } })
  const denied = await new WireClient(await urlOf(world, 'far'), { authorization: `Bearer ${stranger}` }).modernCall('echo')
  expect(denied.status).toBe(403)
  expect(idp.exchanged.map(({ subject }) => subject)).not.toContain('stranger')
  expect(eve).not.toBe(ada)
}

/** One trace from the client through the proxy to the server. */
async function expectTraces(world: World, collector: OtlpReceiver, token: string): Promise<void> {
  for (const name of ['web', 'piped', 'far']) {
    const traceId = randomBytes(16).toString('hex')
    const parent = randomBytes(8).toString('hex')
    const client = await opened(world, await urlOf(world, name), token)
    const answer = await client.call('report_request', {}, { headers: { traceparent: `00-${traceId}-${parent}-01` } })
    const { headers, meta } = reported(answer.text) as { headers: Record<string, string> | null; meta: Record<string, string> }
    const [, seenTrace, seenParent] = (headers?.['traceparent'] ?? meta['traceparent'] ?? '').split('-')
    world.expect([name, seenTrace]).toEqual([name, traceId])
    const span = await world.eventually(`the collector has the span of ${name}`, async () =>
      collector.spans.find((each) => each.traceId === traceId && each.parentSpanId === parent),
    )
    world.expect([name, seenParent, span.resource['service.name']]).toEqual([name, span.spanId, name])
  }
  world.expect(collector.problems).toEqual([])
}

/** Every event is on standard output and at the collector, with user and outcome, and without any token. */
async function expectAudit(world: World, collector: OtlpReceiver, tokens: readonly (string | undefined)[]): Promise<void> {
  const { expect } = world
  for (const name of ['web', 'piped', 'far']) {
    const outcomes = await world.eventually(`the log of ${name} has all outcomes`, async () => {
      const printed = await printedBy(world, name)
      for (const token of tokens) expect(printed).not.toContain(token)
      const events = printed.split('\n').flatMap((line) => (line.includes('"audit_event"') ? [JSON.parse(line) as AuditLine] : []))
      const seen = new Set(events.map(({ subjects, outcome }) => `${subjects.user} ${outcome}`))
      const isComplete =
        ['ada success', 'ada denied', 'bob denied'].every((each) => seen.has(each)) && events.some(isDenial('bob', NO_TOOL))
      return isComplete && events
    })
    expect(outcomes.some(({ outcome, subjects }) => outcome === 'denied' && subjects.user === 'anonymous')).toBe(true)
    // The answers are the same; only here a tool that bob may not call differs from one that does not exist.
    const listed = (tool: string) => new Set(outcomes.filter(isDenial('bob', tool)).map(({ authz }) => authz?.tool_listed))
    expect([name, listed('echo'), listed(NO_TOOL)]).toEqual([name, new Set([true]), new Set([false])])
    const isAtCollector = ({ audit_id: id }: AuditLine) => collector.logs.some(({ body }) => body.includes(id))
    await world.eventually(`the collector has the events of ${name}`, async () => outcomes.every(isAtCollector))
  }
}

interface AuditLine {
  readonly audit_id: string
  readonly outcome: string
  readonly subjects: { readonly user: string }
  readonly target: { readonly name?: string }
  readonly authz?: { readonly tool_listed?: boolean }
}

function isDenial(user: string, tool: string) {
  return ({ outcome, subjects, target }: AuditLine) => outcome === 'denied' && subjects.user === user && target.name === tool
}

/** The other ways to authenticate, one after the other, on the same servers. A header of the client never wins. */
async function expectOtherCredentials(world: World, idp: OidcServer, token: string): Promise<void> {
  const is: Readonly<Record<string, (seen: Record<string, string>) => boolean>> = {
    header: (seen) => seen['x-api-key'] === 'top secret' && seen['authorization'] === undefined,
    bearer: (seen) => seen['authorization'] === 'Bearer for-the-backend',
    client: (seen) => claimsOf(seen['authorization'])['client_id'] === idp.clientId,
  }
  for (const [type, isSeen] of Object.entries(is)) {
    for (const [name, kind] of OVER_HTTP) await world.edit(kind, name, { externalAuthConfigRef: { name: type } })
    for (const [name] of OVER_HTTP) {
      const seen = await world.eventually(`the server of ${name} receives the credentials of type ${type}`, async () => {
        const headers = await headersSeen(world, name, token, { 'x-api-key': 'of the client' })
        return isSeen(headers) && headers
      })
      world.expect(JSON.stringify(seen)).not.toContain(token)
    }
  }
}

async function urlOf(world: World, name: string): Promise<string> {
  const found = await world.client.get(name === 'far' ? REMOTE : SERVER, world.at(name))
  return await world.outside(found.status?.url)
}

/** Keys, tokens and the way to the server may take a moment. */
async function opened(world: World, url: string, token: string): Promise<WireClient> {
  return await world.eventually(`${url} takes the token`, async () => {
    const client = new WireClient(url, { authorization: `Bearer ${token}` })
    return (await client.initialize()).status === 200 && client
  })
}

async function toolsOf(client: WireClient): Promise<string[]> {
  const answer = await client.request('tools/list')
  const { tools } = answer.messages.at(-1).result as { tools: { name: string }[] }
  return tools.map(({ name }) => name).toSorted()
}

async function headersSeen(
  world: World,
  name: string,
  token: string,
  headers: Record<string, string> = {},
): Promise<Record<string, string>> {
  const client = await opened(world, await urlOf(world, name), token)
  const answer = await client.call('report_request', {}, { headers })
  return (reported(answer.text) as { headers: Record<string, string> }).headers
}

/** The report of the fixture in the text of an answer. */
function reported(text: string): object {
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return (JSON.parse(data) as { result: { structuredContent: object } }).result.structuredContent
}

function claimsOf(authorization: string | undefined): Record<string, unknown> {
  const payload = authorization?.split('.')[1]
  return payload === undefined ? {} : (JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>)
}

async function printedBy(world: World, name: string): Promise<string> {
  const { client, namespace } = world
  const chunks: Uint8Array[] = []
  for (const { metadata } of await world.proxyPods(name))
    for await (const chunk of podLogs(client, { namespace, pod: metadata.name })) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
