import { readFileSync } from 'node:fs'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { type Collector, startCollector } from '@thv/testkit/collector/collector'
import { collectorProblem } from '@thv/testkit/collector/collector-binary'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { spawnReadyRunner } from './testing/runner-process.ts'

const describeCollector = collectorProblem() === undefined || process.env['CI'] ? describe : describe.skip
const ajv = new Ajv2020({ allErrors: true })
formats.default(ajv)
const isEvent = ajv.compile(JSON.parse(readFileSync(new URL('../../../docs/reference/audit-event.schema.json', import.meta.url), 'utf8')))

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const ENV = { OTEL_METRIC_EXPORT_INTERVAL: '500', OTEL_BSP_SCHEDULE_DELAY: '200' }

describeCollector('a real OpenTelemetry collector behind a runner', () => {
  let collector: Collector
  let fixture: Fixture
  let idp: OidcServer
  beforeAll(async () => {
    collector = await startCollector()
    fixture = await startFixture()
    idp = await startOidcServer()
  }, 20 * 60_000)
  afterAll(async () => {
    await idp?.[Symbol.asyncDispose]()
    await fixture?.stop()
    await collector?.[Symbol.asyncDispose]()
  })

  it('has one trace from client through runner to server, the metrics, and one valid audit event per request, hostile ones included', async () => {
    const runner = await spawnReadyRunner(
      {
        ...{ remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http' },
        oidc_config: { issuer: idp.issuer, audience: 'tests', allow_private_ip: true },
        authz_config: {
          version: '1.0',
          type: 'cedarv1',
          cedar: { policies: ['forbid(principal, action, resource == Tool::"who_am_i");', 'permit(principal, action, resource);'] },
        },
        rate_limit_config: { tools: [{ name: 'greet', shared: { maxTokens: 1, refillPeriod: '24h' } }] },
        telemetry_config: {
          endpoint: collector.endpoint,
          insecure: true,
          tracing_enabled: true,
          metrics_enabled: true,
          sampling_rate: '1',
        },
        audit_config: { otlp: true },
      },
      ENV,
    )
    const token = await idp.token({ claims: { sub: 'ada' } })
    const client = new WireClient(runner.url, { authorization: `Bearer ${token}` })
    const bad = (authorization: string) => new WireClient(runner.url, { authorization })
    const [head = '', payload = ''] = token.split('.')
    const requests: (() => Promise<{ status: number }>)[] = [
      () => client.modern('tools/list'),
      () => client.modernCall('greet', { name: 'a' }),
      () => client.modernCall('greet', { name: 'b' }),
      () => client.modernCall('who_am_i'),
      () => client.modernCall('rpc_error'),
      () => client.modernCall('nothing_of_that_name'),
      () => client.post('{'),
      () => client.post('[]'),
      () => client.modern('tools/list', {}, { headers: { 'mcp-session-id': 'of somebody else' } }),
      () => new WireClient(runner.url).modernCall('echo'),
      ...['Bearer', 'Bearer x', 'Basic YTpi', `Bearer ${head}.${payload}.`, `Bearer ${token}x`, `Bearer ${'y'.repeat(4_000)}`].map(
        (authorization) => () => bad(authorization).modernCall('echo'),
      ),
      () => fetch(runner.url, { method: 'PUT', headers: { authorization: `Bearer ${token}` } }),
      () => fetch(`${runner.base}/nothing`, { headers: { authorization: `Bearer ${token}` } }),
      () => fetch(`${runner.base}/mcp?access_token=${token}`),
    ]
    const statuses: number[] = []
    for (const request of requests) statuses.push((await request()).status)
    const headers = { traceparent: `00-${TRACE}-${PARENT}-01` }
    const report = await client.modernCall('report_request', {}, { headers })
    statuses.push(report.status)
    expect(new Set(statuses)).toEqual(new Set([200, 400, 401, 403, 404, 405, 429]))
    await runner.stop()

    await expect.poll(async () => (await collector.logs()).length, { timeout: 30_000, interval: 50 }).toBe(statuses.length)
    const events = (await collector.logs()).map((body) => JSON.parse(body) as Record<string, unknown>)
    for (const event of events) expect([isEvent(event), ajv.errorsText(isEvent.errors)]).toEqual([true, 'No errors'])
    const printed = runner.output
      .filter((line) => line.includes('"audit_event"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(events.map((event) => event['audit_id']).sort()).toEqual(printed.map((event) => event['audit_id']).sort())
    const outcomes = new Set(events.map(({ outcome }) => outcome))
    expect(outcomes).toEqual(new Set(['success', 'denied', 'failure', 'application_error']))

    const span = (await collector.spans()).find(({ traceId, parentId }) => traceId === TRACE && parentId === PARENT)
    expect(span?.name).toMatch(/^tools\/call/)
    expect(report.text).toContain(`00-${TRACE}-${span?.id}-01`) // what the server saw
    const received = await collector.received()
    for (const name of ['toolhive_mcp_tool_calls', 'mcp.server.operation.duration']) expect(received).toContain(`-> Name: ${name}`)
    expect(received).not.toContain(token)
    expect(received).not.toContain(payload)
  })
})
