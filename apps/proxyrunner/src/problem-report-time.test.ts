import type { BackendProblem, BackendStatus } from '@thv/gateway/backend'
import { ask, type Question } from '@thv/gateway/relay/ask'
import type { BackendClient } from '@thv/gateway/relay/backend-client'
import { BackendMonitor } from '@thv/gateway/relay/backend-monitor'
import { HTTP_BACKEND_LIMITS } from '@thv/gateway/relay/relay-limits'
import { httpError } from '@thv/http/http-errors'
import type { Target } from '@thv/http/outbound/outbound'
import { TestClock } from '@thv/kernel/clock'
import type { KubeClient, KubeEvent } from '@thv/kube'
import type { Log } from '@thv/telemetry/log'
import { describe, expect, it } from 'vitest'
import { pipeRuntime } from './backends/stdio/testing/pipe-runtime.ts'
import { startStdioRunner } from './backends/stdio/testing/stdio-runner.ts'
import { reportProblems } from './problem-reports.ts'
import { createOwnerEvents } from './runtime/kubernetes/owner-events.ts'
import { configOf, memoryLog } from './runtime/testing/runtime-fixtures.ts'

/*
 * How long a user waits for the cause, as the sum of the waits that the runner makes: its clock is the test's, all else takes no time. What
 * follows the Event waits for nothing: the operator is woken by it, and kubectl and thv read its status.
 */

const LIMIT_MS = 15_000
const STEP_MS = 250
const OWNER = { api_version: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', name: 'demo', uid: 'u1' }
const SILENT_LOG = { info: () => {}, error: () => {}, debug: () => {}, warn: () => {} } as unknown as Log

type Send = (request: Parameters<Target['send']>[0], sink: Parameters<Target['send']>[1]) => Promise<void>

interface Watched {
  readonly status: () => Pick<BackendStatus, 'ready' | 'problem'>
  readonly problem?: BackendProblem
}

/** The first Event, and the time of the runner's clock when it is sent. */
async function firstEvent(clock: TestClock, { status, problem }: Watched): Promise<{ reason: string | undefined; afterMs: number }> {
  const sent: { reason: string | undefined; afterMs: number }[] = []
  const client = {
    create: async (_: unknown, event: KubeEvent) => {
      sent.push({ reason: event.reason, afterMs: clock.monotonic() })
      return event
    },
  } as unknown as KubeClient
  const config = configOf({ transport: 'streamable-http', target_port: 9000, owner: OWNER })
  const events = createOwnerEvents({ config, namespace: 'team', instance: 'demo-1', client, pods: () => [], clock, log: memoryLog() })
  const stop = new AbortController()
  const backend = {
    get status() {
      return status() as BackendStatus
    },
  }
  const done = reportProblems({ backend, runtime: { problem, report: (cause) => events.report(cause) }, clock, signal: stop.signal })
  while (sent.length === 0 && clock.monotonic() < 4 * LIMIT_MS) await clock.advance(STEP_MS)
  stop.abort()
  await done
  return sent[0] ?? { reason: undefined, afterMs: Number.POSITIVE_INFINITY }
}

/** Over HTTP, with the intervals and limits that a runner has without settings. */
async function overHttp(send: Send) {
  const clock = new TestClock()
  const target: Target = { origin: 'http://mcp-demo:9000', seenOrigin: 'http://mcp-demo:9000', send }
  const backend = {
    target,
    address: { origin: target.origin },
    ownPath: '/mcp',
    ownHop: async () => ({}),
    ask: (_: unknown, question: Question) => ask(target, clock, { ...question, headers: [] }),
  } as unknown as BackendClient
  const { checkIntervalMs: intervalMs, checkTimeoutMs: timeoutMs, checkThreshold: threshold } = HTTP_BACKEND_LIMITS
  const monitor = new BackendMonitor({ backend, clock, log: SILENT_LOG, intervalMs, timeoutMs, threshold, watches: true })
  const stop = new AbortController()
  const done = monitor.run(stop.signal)
  const event = await firstEvent(clock, { status: () => ({ ready: monitor.state.alive, problem: monitor.state.problem }) })
  stop.abort()
  await done
  return event
}

const answering = (status: number, type: string, body: string): Send => {
  return async (_, sink) => {
    sink.start(status, { 'content-type': type }, { pause: () => {}, resume: () => {} })
    sink.data(Buffer.from(body))
    sink.end()
  }
}

describe('the cause why a server does not work is reported within 15 seconds', () => {
  it.each<[string, string, Send]>([
    [
      'a wrong mcpPort, or a stdio server that waits for its input',
      'BackendPortClosed',
      () => Promise.reject(httpError('backend_unreachable', 'refused')),
    ],
    ['a web server', 'BackendNotMcp', answering(200, 'text/html', '<h1>It works!</h1>')],
    ['a web server without the path', 'BackendNotMcp', answering(404, 'text/plain', 'not found')],
    ['a program that does not speak HTTP', 'BackendNotMcp', () => Promise.reject(httpError('backend_protocol', 'not HTTP'))],
    [
      'a port that accepts and does not answer',
      'HandshakeTimedOut',
      (request) =>
        new Promise((_, reject) => {
          const { signal } = request
          signal?.addEventListener('abort', { handleEvent: () => reject(signal.reason) })
        }),
    ],
  ])('%s: %s', async (_, reason, send) => {
    const event = await overHttp(send)
    expect(event.reason).toBe(reason)
    expect(event.afterMs).toBeLessThan(LIMIT_MS)
  })

  it('a stdio server declared as HTTP that ends with its input: ServerEnded', async () => {
    const problem: BackendProblem = { reason: 'ServerEnded', message: 'The MCP server ended with exit code 0.' }
    const event = await firstEvent(new TestClock(), { status: () => ({ ready: false }), problem })
    expect(event.reason).toBe('ServerEnded')
    expect(event.afterMs).toBeLessThan(LIMIT_MS)
  })

  it.each<[string, string, (write: (text: string) => void) => void]>([
    ['an HTTP server declared as stdio, which writes its log', 'BackendNotMcp', (write) => write('Listening on http://0.0.0.0:8080\n')],
    ['a program that says nothing', 'HandshakeTimedOut', () => {}],
  ])('%s: %s', async (_, reason, serve) => {
    const clock = new TestClock()
    await using runner = await startStdioRunner({
      runtime: pipeRuntime((ends) => serve((text) => ends.write(text)), { name: 'kubernetes', capacity: 1 }),
      clock,
    })
    const event = await firstEvent(clock, { status: () => runner.backend.status })
    expect(event.reason).toBe(reason)
    expect(event.afterMs).toBeLessThan(LIMIT_MS)
  })
})
