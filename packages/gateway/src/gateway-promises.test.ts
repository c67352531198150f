import { createHook } from 'node:async_hooks'
import { connect } from 'node:net'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { compilePipeline } from '@thv/middleware/pipeline/pipeline'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { expect, it } from 'vitest'
import type { Backend } from './backend.ts'
import { createGateway } from './gateway.ts'
import { prepareHop } from './relay/prepare-hop.ts'
import { sendMessage } from './response/send-message.ts'

const CALLS = 200

/** A middleware with every step that a POST runs through. */
function synchronous(name: string): Middleware {
  return { name, open: () => undefined, message: () => undefined, prepare: () => undefined, headers: () => {}, end: () => {} }
}

/** Promises and timers per call, through a gateway whose backend answers at once. */
async function costOf(middleware: readonly Middleware[]) {
  const pipeline = compilePipeline(middleware)
  const DONE = Promise.resolve()
  const backend: Backend = {
    status: { ready: true, message: '', eras: undefined, sessions: 0, inFlight: 0 },
    post(context) {
      void prepareHop(pipeline, context)
      pipeline.headers(context, {})
      sendMessage(context.exchange, '{"jsonrpc":"2.0","id":1,"result":{}}')
      return DONE
    },
    openStream: () => DONE,
    endSession: () => DONE,
    drain: () => DONE,
    close: () => DONE,
  }
  const gateway = createGateway({
    ...{ backend, pipeline, log: new CollectingLog(), metrics: createMetrics() },
    server: { name: 'test', transport: 'stdio', host: '127.0.0.1', port: 0 },
    limits: { lameDuckMs: 0 },
    httpLimits: { drainIdleMs: 0 },
  })
  const { port } = await gateway.listen()
  await callOneByOne(port, CALLS) // warm
  const made = { promises: 0, timers: 0 }
  const hook = createHook({
    init(_id, type) {
      if (type === 'PROMISE') made.promises++
      if (type === 'Timeout') made.timers++
    },
  }).enable()
  await callOneByOne(port, CALLS)
  hook.disable()
  await gateway.drain(AbortSignal.timeout(10_000))
  return { promises: Math.round(made.promises / CALLS), timers: Math.round(made.timers / CALLS) }
}

/** With callbacks only, so that the client adds no promises per call. */
function callOneByOne(port: number, calls: number): Promise<void> {
  const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  return new Promise((resolve, reject) => {
    let left = calls
    const socket = connect(port, '127.0.0.1', () => socket.write(head + body))
    socket.on('error', reject).on('data', (chunk) => {
      if (!chunk.toString('latin1').endsWith('"result":{}}')) return
      if (--left > 0) socket.write(head + body)
      else socket.end(resolve)
    })
  })
}

it('synchronous middleware add no promise and no timer to a call', async () => {
  const bare = await costOf([])
  expect(bare.promises).toBeGreaterThan(0) // the hook counts: reading the body takes some
  expect(await costOf(['a', 'b', 'c', 'd'].map(synchronous))).toEqual(bare)
})

it('an asynchronous one does, which shows that they are counted', async () => {
  const bare = await costOf([])
  const waiting: Middleware = { name: 'waiting', message: () => Promise.resolve(undefined) }
  expect((await costOf([waiting])).promises).toBeGreaterThan(bare.promises)
})
