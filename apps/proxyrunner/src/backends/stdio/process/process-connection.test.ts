import { PassThrough } from 'node:stream'
import { TestClock } from '@thv/kernel/clock'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StdioEnd } from '../../../runtime/runtime.ts'
import { ProcessLink } from './process-connection.ts'
import { type StdioSettings, stdioConfig } from './stdio-config.ts'

interface Sent {
  readonly id?: string
  readonly method?: string
  readonly params?: Record<string, unknown> & { _meta?: Record<string, unknown> }
  readonly result?: unknown
}

function setup(settings: Partial<StdioSettings> = {}) {
  const clock = new TestClock()
  const stdin = new PassThrough()
  const stdout = new PassThrough()
  const ended = Promise.withResolvers<StdioEnd>()
  const dropped: string[] = []
  const requests: ParsedRequest[] = []
  const notifications: ParsedNotification[] = []
  const logs: string[] = []
  const ends: StdioEnd[] = []
  let closed = 0
  const log = (message: string) => void logs.push(message)
  const link = new ProcessLink({
    connection: {
      stdin,
      stdout,
      ended: ended.promise,
      async close() {
        closed++
      },
    },
    config: stdioConfig({ name: 'test', ...settings }),
    clock,
    log: { debug: log, info: log, warn: log, error: log },
    metrics: {
      dropped: (what, reason) => void dropped.push(`${what} ${reason}`),
      processStarted: () => {},
      processEnded: () => {},
      processFailed: () => {},
    },
    listener: {
      onRequest: (request) => void requests.push(request),
      onNotification: (notification) => void notifications.push(notification),
      onEnd: (end) => void ends.push(end),
    },
  })
  const lines: string[] = []
  stdin.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n').filter((line) => line !== '')))
  const sent = (): Sent[] => lines.map((line) => JSON.parse(line) as Sent)
  const write = async (message: object | string) => {
    stdout.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`)
    await clock.advance(0)
  }
  return {
    clock,
    stdin,
    stdout,
    end: ended.resolve,
    dropped,
    requests,
    notifications,
    logs,
    ends,
    link,
    lines,
    sent,
    write,
    closed: () => closed,
  }
}

function sink() {
  const responses: ParsedResponse[] = []
  const failures: Rejection[] = []
  const progress: ParsedNotification[] = []
  return {
    responses,
    failures,
    progress,
    onResponse: (response: ParsedResponse) => void responses.push(response),
    onFailure: (rejection: Rejection) => void failures.push(rejection),
    onProgress: (notification: ParsedNotification) => void progress.push(notification),
  }
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":12345678901234567890}}}'
const outgoing = { text: CALL, hasToken: false }

describe('ProcessLink', () => {
  it('changes nothing but the id, and gives equal client ids different ones', async () => {
    const { link, lines, sent, clock } = setup()
    link.call(outgoing, sink())
    link.call(outgoing, sink())
    await clock.advance(0)
    const [first, second] = sent()
    expect(first?.id).toMatch(/^[\w-]{8}\.1$/)
    expect(second?.id).not.toBe(first?.id)
    expect(lines[0]).toBe(CALL.replace('"id":1', `"id":"${first?.id}"`))
  })

  it('routes answers by id, in any order', async () => {
    const { link, sent, write, clock } = setup()
    const sinks = [sink(), sink(), sink()]
    for (const waiter of sinks) link.call(outgoing, waiter)
    await clock.advance(0)
    for (const at of [2, 0, 1]) await write({ jsonrpc: '2.0', id: sent()[at]?.id, result: { at } })
    expect(sinks.map(({ responses }) => responses.map(({ message }) => 'result' in message && message.result))).toEqual([
      [{ at: 0 }],
      [{ at: 1 }],
      [{ at: 2 }],
    ])
    expect(link.inFlight).toBe(0)
  })

  it('ignores and counts answers without a waiting call', async () => {
    const { link, sent, write, dropped, clock } = setup()
    const waiter = sink()
    link.call(outgoing, waiter)
    await clock.advance(0)
    const id = sent()[0]?.id
    await write({ jsonrpc: '2.0', id: 1, result: {} })
    await write({ jsonrpc: '2.0', id: 'AAAAAAAA.1', result: {} })
    await write({ jsonrpc: '2.0', error: { code: -32700, message: 'what?' } })
    expect(waiter.responses).toEqual([])
    await write({ jsonrpc: '2.0', id, result: {} })
    await write({ jsonrpc: '2.0', id, result: {} })
    expect(waiter.responses).toHaveLength(1)
    expect(dropped).toEqual(['response foreign_id', 'response foreign_id', 'response foreign_id', 'response late'])
  })

  it('rewrites a progress token and gives progress to its call only', async () => {
    const { link, sent, write, dropped, clock } = setup()
    const waiter = sink()
    const text = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":7,"x":1}}}'
    link.call({ text, hasToken: true }, waiter)
    link.call(outgoing, sink())
    await clock.advance(0)
    const [first] = sent()
    expect(first?.params?._meta).toEqual({ progressToken: first?.id, x: 1 })
    await write({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: first?.id, progress: 1 } })
    await write({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 7, progress: 1 } })
    expect(waiter.progress).toHaveLength(1)
    expect(dropped).toEqual(['progress foreign_id'])
  })

  it('cancels under the id that the server knows, and keeps the owner until the server had time to notice', async () => {
    const { link, sent, write, dropped, clock } = setup({ ghostMs: 1_000 })
    const owner = {}
    const waiter = sink()
    const call = link.call(outgoing, waiter, { owner })
    link.cancel(call, 'enough')
    link.cancel(call, 'twice')
    await clock.advance(0)
    const [request, cancelled, ...rest] = sent()
    expect(cancelled).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: request?.id, reason: 'enough' },
    })
    expect(rest).toEqual([])
    expect([link.inFlight, link.owners.size]).toEqual([0, 1])
    await write({ jsonrpc: '2.0', id: request?.id, result: {} })
    expect([waiter.responses.length, waiter.failures.length, link.owners.size]).toEqual([0, 0, 0])
    expect(dropped).toEqual(['response late'])
    link.cancel(link.call(outgoing, sink(), { owner }), 'never answered')
    await clock.advance(3_000)
    expect(link.owners.size).toBe(0)
  })

  it('gives up a silent call after its time, not one that shows progress, and tells the server', async () => {
    const { link, sent, write, clock } = setup({ idleTimeoutMs: 10_000 })
    const [silent, busy] = [sink(), sink()]
    link.call(outgoing, silent, { idleMs: 10_000, hardMs: 30_000 })
    link.call({ text: CALL, hasToken: true }, busy, { idleMs: 10_000, hardMs: 30_000 })
    await clock.advance(0)
    const id = sent()[1]?.id
    for (let second = 0; second < 12; second += 6) {
      await clock.advance(6_000)
      await write({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: second } })
    }
    expect(silent.failures).toMatchObject([{ error: 'backend_timeout', httpStatus: 504 }])
    expect(busy.failures).toEqual([])
    for (let second = 0; second < 30; second += 6) {
      await clock.advance(6_000)
      await write({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: 100 + second } })
    }
    expect(busy.failures).toMatchObject([{ error: 'backend_timeout' }])
    expect(sent().filter(({ method }) => method === 'notifications/cancelled')).toHaveLength(2)
  })

  it('does not mistake a person who thinks for a dead server', async () => {
    const { link, clock } = setup()
    const waiter = { ...sink(), mayIdle: () => true }
    link.call(outgoing, waiter, { idleMs: 1_000 })
    await clock.advance(60_000)
    expect(waiter.failures).toEqual([])
  })

  it('answers pings itself and hands everything else on', async () => {
    const { sent, write, requests, notifications } = setup()
    await write({ jsonrpc: '2.0', id: 'p', method: 'ping' })
    await write({ jsonrpc: '2.0', id: 5, method: 'roots/list' })
    await write({ jsonrpc: '2.0', method: 'notifications/message', params: {} })
    expect(sent()).toEqual([{ jsonrpc: '2.0', id: 'p', result: {} }])
    expect(requests.map(({ id }) => id)).toEqual([5])
    expect(notifications).toHaveLength(1)
  })

  it('skips what is no message, logs it at most now and then, and fails the call it should have answered', async () => {
    const { link, sent, write, logs, dropped, clock } = setup({ maxLineBytes: 200 })
    const [broken, huge, fine] = [sink(), sink(), sink()]
    for (const waiter of [broken, huge, fine]) link.call(outgoing, waiter)
    await clock.advance(0)
    const ids = sent().map(({ id }) => id)
    await write('Server starting…\n\n\u001b[32mready\u001b[0m\n{"jsonrpc": \n[1,2]\n')
    await write(`{"jsonrpc":"2.0","id":"${ids[0]}","result":{},"error":{"code":1,"message":"both"}}\n`)
    await write(`{"jsonrpc":"2.0","id":"${ids[1]}","result":"${'x'.repeat(10_000)}"}\n`)
    await write({ jsonrpc: '2.0', id: ids[2], result: {} })
    expect(broken.failures).toMatchObject([{ error: 'backend_protocol_error', detail: 'the answer is malformed' }])
    expect(huge.failures).toMatchObject([{ error: 'backend_protocol_error', detail: 'the answer is over the size limit' }])
    expect(fine.responses).toHaveLength(1)
    expect(dropped.filter((line) => line === 'line noise')).toHaveLength(6)
    expect(logs).toEqual(['the server wrote a line that is no message'])
  })

  it('takes an answer whose line end is missing when the output ends, and fails the rest', async () => {
    const { link, sent, stdout, clock, ends, end } = setup()
    const [answered, lost] = [sink(), sink()]
    link.call(outgoing, answered)
    link.call(outgoing, lost)
    await clock.advance(0)
    stdout.end(`{"jsonrpc":"2.0","id":"${sent()[0]?.id}","result":{"last":true}}`)
    await clock.advance(10)
    end({ code: 3, message: 'ended with code 3' })
    await clock.advance(10)
    expect(answered.responses).toHaveLength(1)
    expect(lost.failures).toMatchObject([
      { error: 'backend_connection_lost', httpStatus: 502, data: { mayHaveRun: true, retryable: true } },
    ])
    expect(ends).toEqual([{ code: 3, message: 'ended with code 3' }])
    const late = sink()
    link.call(outgoing, late)
    expect(late.failures).toMatchObject([{ error: 'backend_unavailable', httpStatus: 503, data: { mayHaveRun: false } }])
  })

  it('stops a process that has closed its output and lives on', async () => {
    const { link, stdout, clock, ends, closed } = setup()
    const lost = sink()
    link.call(outgoing, lost)
    stdout.end('{"jsonrpc":"2.0","id":')
    await clock.advance(1_000)
    expect(lost.failures).toHaveLength(1)
    expect([ends.length, closed()]).toEqual([1, 1])
  })

  it('reads what was written before the end even if the end is heard of first', async () => {
    const { link, sent, stdout, clock, end } = setup()
    const waiter = sink()
    link.call(outgoing, waiter)
    await clock.advance(0)
    end({ code: 0, message: 'ended' })
    await clock.advance(100)
    stdout.end(`{"jsonrpc":"2.0","id":"${sent()[0]?.id}","result":{}}\n`)
    await clock.advance(100)
    expect([waiter.responses.length, waiter.failures.length]).toEqual([1, 0])
  })

  it('waits for a client with much to receive, up to a limit', async () => {
    const { link, stdout, clock, notifications, write } = setup()
    const client = Promise.withResolvers<void>()
    const taker = { pending: 100, isSlow: false, holdableAt: 0, ready: () => client.promise }
    link.holdFor(taker, 50)
    await write({ jsonrpc: '2.0', method: 'notifications/message', params: {} })
    expect([stdout.isPaused(), notifications.length]).toEqual([true, 0])
    await clock.advance(50)
    expect([stdout.isPaused(), notifications.length, taker.isSlow]).toEqual([false, 1, true])
    link.holdFor(taker, 50)
    expect(stdout.isPaused()).toBe(false)
    client.resolve()
    await clock.advance(0)
    expect([taker.isSlow, taker.holdableAt]).toEqual([false, 250])
    link.holdFor(taker, 50)
    expect(stdout.isPaused()).toBe(false)
    await clock.advance(200)
    link.holdFor(taker, 50)
    expect(stdout.isPaused()).toBe(true)
  })

  it('waits with writing while the pipe is full, and loses nothing', async () => {
    const { link, stdin, clock } = setup()
    stdin.removeAllListeners('data').pause()
    const text = CALL.replace('"x"', JSON.stringify('x'.repeat(1_000)))
    const count = 300
    for (let index = 0; index < count; index++) link.call({ text, hasToken: false }, sink())
    await clock.advance(0)
    expect(stdin.readableLength + stdin.writableLength).toBeLessThan(count * text.length)
    let read = ''
    stdin.on('data', (chunk: string) => {
      read += chunk
    })
    stdin.resume()
    for (let turn = 0; turn < count && read.split('\n').length <= count; turn++) await clock.advance(0)
    const ids = read
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as Sent).id)
    expect(new Set(ids).size).toBe(count)
  })

  it('never lets an answer reach another call, whatever a server does with ids it has seen', async () => {
    const action = fc.oneof(
      fc.constant({ kind: 'call' as const, at: 0 }),
      fc.record({ kind: fc.constantFrom('answer' as const, 'cancel' as const, 'progress' as const), at: fc.nat(20) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        const { link, sent, write, clock } = setup()
        const calls: {
          waiter: ReturnType<typeof sink>
          handle: ReturnType<ProcessLink['call']>
          state: 'open' | 'answered' | 'cancelled'
        }[] = []
        for (const { kind, at } of actions) {
          if (kind === 'call') {
            const waiter = sink()
            calls.push({ waiter, handle: link.call({ text: CALL, hasToken: true }, waiter, { owner: waiter }), state: 'open' })
            await clock.advance(0)
            continue
          }
          const call = calls[at % Math.max(1, calls.length)]
          if (call === undefined) continue
          const { wireId } = call.handle
          if (kind === 'answer') {
            await write({ jsonrpc: '2.0', id: wireId, result: { for: wireId } })
            if (call.state === 'open') call.state = 'answered'
          } else if (kind === 'cancel') {
            link.cancel(call.handle, 'no')
            if (call.state === 'open') call.state = 'cancelled'
          } else await write({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: wireId, progress: at } })
        }
        for (const { waiter, handle, state } of calls) {
          const results = waiter.responses.map(({ message }) => 'result' in message && message.result)
          expect(results).toEqual(state === 'answered' ? [{ for: handle.wireId }] : [])
          for (const { message } of waiter.progress) expect(message.params?.['progressToken']).toBe(handle.wireId)
        }
        expect(link.inFlight).toBe(calls.filter(({ state }) => state === 'open').length)
        expect(new Set(sent().flatMap(({ id }) => id ?? [])).size).toBe(calls.length)
      }),
      { numRuns: 60 },
    )
  })
})
