import { createHook } from 'node:async_hooks'
import { systemClock } from '@thv/kernel/clock'
import { parseText } from '@thv/mcp/parse-body'
import { createMetrics } from '@thv/telemetry/metrics'
import type { SpanRecord } from '@thv/telemetry/otlp/otlp-json'
import { describe, expect, it } from 'vitest'
import { createAudit } from '../audit/audit.ts'
import { compilePipeline } from '../pipeline/pipeline.ts'
import type { MessageContext } from '../pipeline/request-context.ts'
import { testContext } from '../testing/test-context.ts'
import { createTelemetry, type TelemetryOptions } from './telemetry.ts'

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

function exchangeOf(headers: Record<string, string> = {}) {
  const answered = { begun: true, status: 200, bytesSent: 2, startedAt: systemClock.monotonic(), remoteAddress: '10.0.0.1' }
  return { method: 'POST', path: '/mcp', headers, ...answered } as unknown as MessageContext['exchange']
}

function start(options: Partial<TelemetryOptions> = {}) {
  const spans: SpanRecord[] = []
  const metrics = createMetrics()
  const exporter = { addSpan: (span: SpanRecord) => spans.push(span), addLog: () => {}, close: async () => {} } as never
  const given = { server: 's', traces: true, rate: 1, trustsParent: false, usesLegacyAttributes: false, attributes: {}, ...options }
  const telemetry = createTelemetry({ ...given, sourceAddress: () => '10.0.0.1' }, { clock: systemClock, metrics, exporter })
  return { spans, metrics, telemetry, pipeline: compilePipeline([telemetry]) }
}

function call(name: string, more: object = {}, overrides: Partial<MessageContext> = {}): MessageContext {
  return testContext({ id: 1, method: 'tools/call', params: { name, ...more } }, { exchange: exchangeOf(), outcome: 'ok', ...overrides })
}

describe('trace context', () => {
  it('goes to a stdio server in _meta, and every other letter stays', () => {
    const { pipeline } = start()
    const text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1.0},"_meta":{"x":1e2}}}'
    const context = testContext(text, { exchange: exchangeOf({ traceparent: PARENT }), backend: { name: 's', transport: 'stdio' } })
    pipeline.open(context)
    pipeline.message(context)
    const { outgoing } = context
    expect(outgoing.text).toContain('"arguments":{"n":1.0}')
    expect(outgoing.text).toMatch(/"traceparent":"00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01"/)
    expect(outgoing.text).toContain('"x":1e2')
    expect(parseText(outgoing.text)).toEqual(outgoing)
  })

  it('is left out of _meta towards an HTTP server unless the client used it', () => {
    const { pipeline } = start()
    const context = call('a')
    pipeline.open(context)
    pipeline.message(context)
    expect(context.outgoing).toBe(context.received)
    const set = { tracestate: 'of=the-client' }
    pipeline.headers(context, set)
    expect(set).toMatchObject({ traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/), tracestate: undefined })
  })

  it('leaves a malformed _meta to the backend', () => {
    const { pipeline } = start()
    const context = call('a', { _meta: 5 }, { backend: { name: 's', transport: 'stdio' } })
    pipeline.open(context)
    expect(pipeline.message(context)).toBeUndefined()
    expect(context.outgoing).toBe(context.received)
  })

  it('is not made without tracing', () => {
    const { pipeline } = start({ traces: false })
    const context = call('a')
    pipeline.open(context)
    expect(context.trace).toBeUndefined()
  })
})

describe('labels and span names', () => {
  it('take only names that a list has shown', () => {
    const { pipeline, metrics, spans } = start()
    const list = testContext({ id: 1, method: 'tools/list' }, { exchange: exchangeOf() })
    pipeline.item(list, 'tools/list', { name: 'known' })
    for (const name of ['known', 'made-up', 'another', 'https://secret.example']) {
      const context = call(name)
      pipeline.open(context)
      pipeline.end(context)
    }
    expect(spans.map(({ name }) => name)).toEqual(['tools/call known', 'tools/call', 'tools/call', 'tools/call'])
    const page = metrics.render()
    expect(page).toContain('toolhive_mcp_tool_calls_total{server="s",tool="known",status="success"} 1')
    expect(page).toContain('toolhive_mcp_tool_calls_total{server="s",tool="other",status="success"} 3')
    expect(page).not.toMatch(/made-up|secret\.example/)
  })

  it('hold nothing of queries, arguments, sessions and made-up methods', () => {
    const { pipeline, spans } = start({ usesLegacyAttributes: true })
    const headers = { 'mcp-session-id': 'S3CRET', authorization: 'Bearer S3CRET', 'user-agent': 'x Bearer S3CRET-1' }
    const context = call('a', { arguments: { q: 'S3CRET' } }, { exchange: exchangeOf(headers), sessionId: 'S3CRET' })
    const strange = testContext({ id: 1, method: 'S3CRET/method' }, { exchange: exchangeOf(headers), outcome: 'ok' })
    for (const one of [context, strange]) {
      pipeline.open(one)
      pipeline.end(one)
    }
    expect(spans).toHaveLength(2)
    expect(JSON.stringify(spans)).not.toContain('S3CRET')
  })
})

it('audit and telemetry make no promise and no timer per call', () => {
  const { telemetry } = start({ rate: 0.5 })
  let events = 0
  const sink = { write: () => void events++, close: async () => {} }
  const limits = { maxDataBytes: 1024, maxDelegationDepth: 10, trustProxyHeaders: false, trustedProxies: [], eventTypes: [] }
  const flags = { includeRequestData: false, includeResponseData: false, detectApplicationErrors: true, excludeEventTypes: [] }
  const audit = createAudit({ component: 'c', ...limits, ...flags }, { clock: systemClock, sink })
  const pipeline = compilePipeline([audit, telemetry])
  const made: string[] = []
  const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
  for (let i = 0; i < 100; i++) {
    const context = call('a', {}, { exchange: exchangeOf({ traceparent: PARENT }) })
    pipeline.open(context)
    pipeline.message(context)
    pipeline.prepare(context)
    pipeline.headers(context, {})
    pipeline.end(context)
  }
  hook.disable()
  expect(made.filter((type) => type !== 'RANDOMBYTESREQUEST')).toEqual([]) // one block of random bytes serves many ids
  expect(events).toBe(100)
})
