import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTokenServer, type TokenServer } from '@thv/auth/outgoing/testing/token-server'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { type Backend, startBackend } from '@thv/http/testing/backend'
import { createCertificate } from '@thv/http/tls/certificate'
import { errorMessage } from '@thv/kernel/errors'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { type OtlpReceiver, startOtlpReceiver } from '@thv/testkit/otlp/otlp-receiver'
import { runDocument } from '../run-document.ts'
import { type RedisPeer, startRedisPeer } from './redis-peer.ts'

/** Everything around a runner, and what can be seen of the runner there. */
export interface Surroundings extends AsyncDisposable {
  readonly idp: OidcServer
  readonly otherIdp: OidcServer
  /** The keys of `idp` and a collector that answers nothing, by TLS. */
  readonly tls: Backend
  readonly collector: OtlpReceiver
  readonly tokens: TokenServer
  readonly redis: RedisPeer
  readonly tlsRedis: RedisPeer
  /** Of files that documents name. */
  file(name: string): string
  /** Runs the document and uses the runner in every way. The same document gives the same result. */
  observe(document: object): Promise<Observation>
}

/** `works`: the runner started. */
export interface Observation {
  readonly works: boolean
  /** JSON, more or less, in lines. */
  readonly seen: string
}

/** Of variables that documents name. */
const ENV = {
  ...{ API_KEY: 'k3y', OTHER_KEY: '0ther', TOOLHIVE_SECRET_first: 'from-first', TOOLHIVE_SECRET_second: 'from-second' },
  ...{ TOOLHIVE_OTEL_HEADER_X_API_KEY: 'k3y', TOOLHIVE_OTEL_HEADER_X_OTHER: '0ther', ZONE: 'z1', TEAM: 't1' },
  ...{ OTEL_BSP_SCHEDULE_DELAY: '20', OTEL_METRIC_EXPORT_INTERVAL: '600000' },
  THV_SESSION_REDIS_PASSWORD: 'redis-secret',
}
const HEADERS = {
  ...{ 'x-forwarded-for': '203.0.113.9, 198.51.100.7, 10.0.0.1', origin: 'https://app.example.com', 'x-api-key': 'of-the-client' },
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
}

const TOOLS = ['report_request', 'echo', 'renamed', 'echo', 'fail', 'no_such_tool']

export async function openSurroundings(): Promise<Surroundings> {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'thv-every-field-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string) => join(folder, name)
  const fixture = stack.use(await startFixture())
  const idp = stack.use(await startOidcServer())
  const otherIdp = stack.use(await startOidcServer())
  const keys = await (await fetch(idp.jwksUrl)).text()
  const authority = createCertificate({ commonName: 'every field', ca: true })
  writeFileSync(file('ca.crt'), authority.certPem)
  const certificate = createCertificate({ commonName: 'server', hosts: ['127.0.0.1'], issuer: authority })
  const tls = stack.use(
    await startBackend((_, response) => void response.setHeader('content-type', 'application/json').end(keys), certificate),
  )
  const collector = stack.use(await startOtlpReceiver())
  const tokens = stack.use(await startTokenServer())
  const redis = stack.use(await startRedisPeer())
  const tlsRedis = stack.use(await startRedisPeer(certificate))
  const around = { fixture, idp, tls, collector, tokens, redis, tlsRedis, file }
  const callers = await callersOf(idp)
  const owned = stack.move()
  return {
    ...around,
    otherIdp,
    observe: (document) => observe(document, around, callers),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

type Callers = Readonly<Record<string, string | undefined>>

async function callersOf(idp: OidcServer): Promise<Callers> {
  const act = { sub: 'gate', act: { sub: 'inner', act: { sub: 'innermost' } } }
  const claims = { sub: 'ada', groups: ['devs'], teams: ['ops'], roles: ['admin'], areas: 'red blue', act }
  return {
    anonymous: undefined,
    ada: `Bearer ${await idp.token({ claims })}`,
    stranger: `Bearer ${await idp.token({ audience: 'others', claims: { sub: 'bob' } })}`,
    opaque: `Bearer ${await idp.token({ format: 'opaque', claims: { sub: 'ada' } })}`,
  }
}

interface Around extends Omit<Surroundings, 'observe' | 'otherIdp' | typeof Symbol.asyncDispose> {
  readonly fixture: Fixture
}

async function observe(document: object, around: Around, callers: Callers): Promise<Observation> {
  const { idp, tls, collector, tokens, redis, tlsRedis, file } = around
  for (const name of auditFiles(file(''))) rmSync(file(name))
  const { spans, metrics, logs } = collector
  for (const list of [spans, metrics, logs, redis.commands, tlsRedis.commands, tls.requests, tokens.forms, tokens.backend.requests])
    list.length = 0
  const asked = hitsOf(idp)
  let used: Used
  try {
    used = await use(document, around, callers)
  } catch (error) {
    return { works: false, seen: errorMessage(error) }
  }
  const seen = {
    ...used,
    asked: Object.entries(hitsOf(idp)).map(([path, count]) => [path, count > (asked[path] ?? 0)]),
    keys: tls.requests.map(({ url, headers }) => [url, headers.authorization]),
    forms: tokens.forms.map(String),
    clients: tokens.backend.requests.map(({ url, headers }) => [url, headers.authorization]),
    redis: distinct(redis.commands),
    tlsRedis: distinct(tlsRedis.commands),
    audit: auditFiles(file('')).map((name) => [name, steady(readFileSync(file(name), 'utf8'))]),
    spans: distinct(spans.map(({ name, attributes, resource }) => JSON.stringify([name, attributes, resource]))),
    metrics: distinct(metrics.map(({ name }) => name)),
    logs: logs.length,
    headers: Object.entries(collector.headers).filter(([name]) => name.startsWith('x-')),
  }
  return {
    works: true,
    seen: steady(JSON.stringify(seen))
      .replaceAll(new URL(used.base).host, 'HOST')
      .replaceAll(/(?<=[\]}]),(?=[[{"])/g, ',\n'),
  }
}

interface Used {
  readonly base: string
  readonly answers: unknown
}

async function use(document: object, { fixture }: Around, callers: Callers): Promise<Used> {
  await using runner = await runDocument(fixture.url, { name: 'walked', ...document }, ENV)
  const { origin: base } = new URL(runner.url)
  const answers: unknown[] = []
  const note = (what: string, ...seen: readonly unknown[]) => void answers.push([what, ...seen])
  const get = async (url: string, init: RequestInit = {}) => {
    const answer = await fetch(url, init)
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, text }
  }
  const metadata = await get(`${base}/.well-known/oauth-protected-resource/mcp`)
  note('metadata', metadata.status, metadata.text)
  const preflight = await get(runner.url, {
    method: 'OPTIONS',
    headers: { origin: HEADERS.origin, 'access-control-request-method': 'POST' },
  })
  note('preflight', preflight.status, preflight.headers.get('access-control-allow-origin'))
  for (const [name, authorization] of Object.entries(callers)) {
    const client = new WireClient(runner.url, authorization === undefined ? {} : { authorization })
    const { origin: _, ...headers } = HEADERS
    const list = await client.modern('tools/list', {}, { headers })
    note(`list of ${name}`, list.status, list.headers.get('www-authenticate'), toolsIn(list.messages.at(-1)))
    for (const tool of name === 'ada' ? TOOLS : ['report_request']) {
      const { status, headers: answered, messages } = await client.modernCall(tool, { text: 'x'.repeat(100) }, { headers })
      const wait = Number(answered.get('retry-after') ?? 0)
      note(`${tool} of ${name}`, status, Math.ceil(wait / 3_600), messages.at(-1)?.error?.message, reported(messages.at(-1)))
    }
    const session = await client.initialize()
    note(`session of ${name}`, session.status)
  }
  const page = await get(`${base}/metrics`, callers['ada'] === undefined ? {} : { headers: { authorization: callers['ada'] } })
  note('metrics here', page.status, /^# TYPE/m.test(page.text))
  const own = await get(runner.metricsUrl)
  note(
    'metrics',
    own.status,
    own.text.split('\n').filter((line) => /^toolhive_(mcp_authz|audit)\w+_total/.test(line)),
  )
  const { telemetry_config: telemetry } = document as { telemetry_config?: { prometheus_port?: number } }
  note('port', telemetry?.prometheus_port !== undefined && new URL(runner.metricsUrl).port === String(telemetry.prometheus_port))
  note(
    'warned',
    runner.warnings,
    runner.log.lines.some((line) => line.includes('is not https')),
  )
  return { base, answers }
}

function toolsIn(message: { result?: { tools?: { name: string; description?: string; annotations?: object }[] } } | undefined): unknown {
  const tools = message?.result?.tools?.map(({ name, description, annotations }) => [name, description, annotations])
  return tools?.filter(([name]) => ['echo', 'renamed', 'report_request'].includes(String(name)))
}

/** The headers of the call that the server saw and that somebody set. */
function reported(message: { result?: { structuredContent?: { headers?: Record<string, string> } } } | undefined): unknown {
  const headers = message?.result?.structuredContent?.headers
  return headers && Object.entries(headers).filter(([name]) => /^(x-|authorization|cookie|traceparent)/.test(name))
}

function auditFiles(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith('audit'))
}

function hitsOf(idp: OidcServer): Record<string, number> {
  return Object.fromEntries([OIDC_PATHS.discovery, OIDC_PATHS.jwks, OIDC_PATHS.introspection].map((path) => [path, idp.hits(path)]))
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values.map(steady))].sort()
}

/** Without times, ids that are chance, and numbers that depend on these. */
function steady(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID')
    .replaceAll(/"(duration_ms|response_size_bytes|[a-z._]*(size|duration|port)[a-z._]*)\\?":[\d.]+/g, '"$1":0')
    .replaceAll(/(eyJ[\w-]+)\.eyJ[\w-]+\.[\w-]+/g, '$1') // the head of a token names its key
    .replaceAll(/00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}/g, 'TRACE')
    .replaceAll(/\\?"(span_id|trace_id|mcp\.session\.id|request_id)\\?":\\?"[^"\\]*\\?"/g, '"$1":""')
}
