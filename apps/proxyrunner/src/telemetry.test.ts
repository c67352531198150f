import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { type OtlpReceiver, startOtlpReceiver } from '@thv/testkit/otlp/otlp-receiver'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WireClient } from '../../../packages/gateway/src/testing/wire-client.ts'
import { spawnReadyRunner } from './testing/runner-process.ts'

let fixture: Fixture
let collector: OtlpReceiver
beforeEach(async () => {
  fixture = await startFixture()
  collector = await startOtlpReceiver()
})
afterEach(async () => {
  await fixture.stop()
  await collector[Symbol.asyncDispose]()
})

const ENV = {
  ...{ OTEL_METRIC_EXPORT_INTERVAL: '200', OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_RESOURCE_ATTRIBUTES: 'service.namespace=team%2Ca' },
  TOOLHIVE_OTEL_HEADER_X_API_KEY: 'k3y',
}
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`

function startRunner(telemetry: object = {}, more: object = {}) {
  const telemetryConfig = {
    ...{ endpoint: collector.endpoint, insecure: true, tracing_enabled: true, metrics_enabled: true, sampling_rate: '1' },
    ...{ headers: { 'X-Team': 'a' }, sensitive_headers: ['X-Api-Key'], custom_attributes: { zone: 'z1' } },
    ...telemetry,
  }
  const remote = { remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http' }
  return spawnReadyRunner({ ...remote, telemetry_config: telemetryConfig, audit_config: { otlp: true }, ...more }, ENV)
}

describe('the telemetry of a runner process', () => {
  it('sends one trace from client through runner to server, the metrics and the audit events', async () => {
    await using runner = await startRunner()
    const client = new WireClient(runner.url)
    await client.modern('tools/list')
    const report = await client.modernCall('report_request', {}, { headers: { traceparent: PARENT, tracestate: 'v=1' } })
    await client.modernCall('made_up_by_the_client')
    await expect.poll(() => collector.spans.length, { timeout: 30_000 }).toBe(3)
    const span = collector.spans.find(({ name }) => name === 'tools/call report_request')
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: 'b7ad6b7169203331' })
    expect(report.text).toContain(`00-${TRACE}-${span?.spanId}-01`) // what the server saw
    expect(report.text).toContain('v=1')
    expect(span?.attributes).toMatchObject({
      ...{ 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'report_request', 'http.response.status_code': 200 },
      ...{ 'network.transport': 'tcp', 'mcp.server.name': 'test', 'http.method': 'POST' },
    })
    expect(span?.resource).toMatchObject({ 'service.name': 'thv-test', 'service.namespace': 'team,a', zone: 'z1' })
    expect(collector.spans.map(({ name }) => name)).toContain('tools/call') // no name that a client made up
    expect(collector.headers).toMatchObject({ 'x-team': 'a', 'x-api-key': 'k3y' })

    const callsIn = () => collector.metrics.filter(({ name }) => name === 'toolhive_mcp_tool_calls').at(-1)?.points ?? []
    await expect.poll(() => callsIn().length, { timeout: 30_000 }).toBe(2)
    expect(
      callsIn()
        .map(({ attributes, value }) => [attributes['tool'], value])
        .sort(),
    ).toEqual([
      ['other', 1],
      ['report_request', 1],
    ])
    const names = new Set(collector.metrics.map(({ name }) => name))
    for (const name of ['toolhive_mcp_requests', 'toolhive_mcp_request_duration', 'mcp.server.operation.duration'])
      expect(names).toContain(name)

    await expect.poll(() => collector.logs.length, { timeout: 30_000 }).toBe(3)
    const logged = collector.logs.find(({ traceId }) => traceId === TRACE)
    expect(JSON.parse(logged?.body ?? '')).toMatchObject({ type: 'mcp_tool_call', target: { name: 'report_request' } })
    expect(collector.problems).toEqual([])
  })

  it('takes the trace from _meta before the header, and passes it on in both', async () => {
    await using runner = await startRunner()
    const client = new WireClient(runner.url)
    const other = '00-11111111111111111111111111111111-2222222222222222-01'
    const report = await client.modern(
      'tools/call',
      { name: 'report_request', arguments: {}, _meta: { traceparent: PARENT } },
      { headers: { traceparent: other } },
    )
    await expect.poll(() => collector.spans.length, { timeout: 30_000 }).toBe(1)
    const [span] = collector.spans
    expect(span?.traceId).toBe(TRACE)
    expect(report.text.split(`00-${TRACE}-${span?.spanId}-01`).length).toBeGreaterThanOrEqual(2)
    expect(report.text).not.toContain('1111111111111111')
  })

  it('samples by its own rate, whatever a client asks for', async () => {
    await using runner = await startRunner({ sampling_rate: '0' })
    const client = new WireClient(runner.url)
    const report = await client.modernCall('report_request', {}, { headers: { traceparent: PARENT } })
    expect(report.text).toMatch(new RegExp(`00-${TRACE}-[0-9a-f]{16}-00`))
    await expect.poll(() => collector.logs.length, { timeout: 30_000 }).toBe(1)
    expect(collector.spans).toEqual([])
  })

  it('answers calls while the collector fails, goes on when it is back, and sends the rest at the end', async () => {
    await using runner = await startRunner()
    const client = new WireClient(runner.url)
    collector.status = 503
    for (let i = 0; i < 10; i++) expect((await client.modernCall('echo')).status).toBe(200)
    await expect.poll(() => runner.log.join(''), { timeout: 30_000 }).toContain('could not send telemetry')
    collector.status = 200
    await expect.poll(() => collector.spans.length, { timeout: 60_000 }).toBe(10)
    for (let i = 0; i < 5; i++) await client.modernCall('echo')
    expect(await runner.stop()).toBe(0)
    expect(collector.spans).toHaveLength(15)
    expect(collector.logs).toHaveLength(15)
  })

  it('ends in time when the collector is gone', async () => {
    await using runner = await startRunner()
    await collector[Symbol.asyncDispose]()
    const client = new WireClient(runner.url)
    for (let i = 0; i < 5; i++) expect((await client.modernCall('echo')).status).toBe(200)
    expect(await runner.stop()).toBe(0)
    collector = await startOtlpReceiver() // for the end of the test
  })
})
