import { WireClient } from '@thv/gateway/testing/wire-client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { startOtlpReceiver } from '@thv/testkit/otlp/otlp-receiver'
import { describe, expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${TRACE}-b7ad6b7169203331-01`

describe('the middleware in front of a virtual server', () => {
  it.each(['legacy', 'modern'] as const)('sends one trace from client through virtual server to a %s backend', async (era) => {
    await using collector = await startOtlpReceiver()
    await using fixture = await startFixture({ era })
    await using vmcp = await startTestVmcp({
      backends: { one: fixture.url },
      env: { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_METRIC_EXPORT_INTERVAL: '200' },
      config: {
        telemetry: { endpoint: collector.endpoint, insecure: true, tracingEnabled: true, metricsEnabled: true, samplingRate: '1' },
      },
    })
    const client = new WireClient(vmcp.url)
    await client.modern('tools/list')
    const report = await client.modernCall('report_request', {}, { headers: { traceparent } })
    expect(report.status).toBe(200)
    const span = () => collector.spans.find(({ name }) => name === 'tools/call report_request')
    await expect.poll(span, { timeout: 30_000 }).toMatchObject({ traceId: TRACE, parentSpanId: 'b7ad6b7169203331' })
    expect(report.text).toContain(`00-${TRACE}-${span()?.spanId}-01`) // what the backend saw
    await expect.poll(() => collector.metrics.some(({ name }) => name === 'toolhive_mcp_tool_calls'), { timeout: 30_000 }).toBe(true)
  })

  it('limits calls by the names that clients see', async () => {
    await using fixture = await startFixture({ only: ['echo', 'who_am_i'] })
    await using vmcp = await startTestVmcp({
      backends: { one: fixture.url },
      config: {
        aggregation: { conflictResolution: 'prefix' },
        rateLimiting: { tools: [{ name: 'one_echo', shared: { maxTokens: 2, refillPeriod: '1h' } }] },
      },
    })
    const client = new WireClient(vmcp.url)
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await client.modernCall('one_echo')).status)
    expect(statuses).toEqual([200, 200, 429])
    expect((await client.modernCall('one_who_am_i')).status).toBe(200)
    expect(fixture.stats.count('tools/call')).toBe(3)
  })

  it('says where sessions are kept', async () => {
    await using fixture = await startFixture({ only: ['echo'] })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    expect(await (await fetch(`${vmcp.base}/status`)).json()).toMatchObject({ session_storage: 'memory' })
    expect(vmcp.logged.join('\n')).toContain('run one replica only')
  })
})
