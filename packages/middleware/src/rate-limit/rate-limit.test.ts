import { createHook } from 'node:async_hooks'
import { TestClock } from '@thv/kernel/clock'
import { METHODS } from '@thv/mcp/methods'
import { describe, expect, it } from 'vitest'
import type { MessageContext } from '../pipeline/request-context.ts'
import { testContext } from '../testing/test-context.ts'
import type { Limit, LimitScope } from './limit.ts'
import { MemoryBuckets } from './memory-buckets.ts'
import { createRateLimit } from './rate-limit.ts'

const limit = (scope: LimitScope, maxTokens: number, options: Partial<Limit> = {}): Limit => ({
  scope,
  tool: undefined,
  maxTokens,
  periodMs: 60_000,
  ...options,
})

function start(limits: readonly Limit[], options: { methods?: readonly string[]; maxUsers?: number } = {}) {
  const { methods = [], ...more } = options
  const clock = new TestClock()
  const middleware = createRateLimit({ limits, methods }, { buckets: new MemoryBuckets({ clock, ...more }) })
  const send = (message: object, of: Partial<MessageContext> = {}) => {
    const context = testContext({ id: 1, ...message }, of)
    return { context, rejection: middleware.message?.(context) as ReturnType<typeof rejected> }
  }
  const call = (name = 'echo', principal = 'ada') =>
    send({ method: METHODS.toolsCall, params: { name } }, { caller: { principal } }).rejection
  return { clock, middleware, send, call }
}

function rejected(retryAfterSeconds: number) {
  return expect.objectContaining({
    error: 'rate_limited',
    httpStatus: 429,
    data: { retryAfterSeconds },
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

describe('limits', () => {
  it('let a full bucket through, then reject with the time until there is a token', async () => {
    const { clock, call } = start([limit('server', 3)])
    expect([call(), call(), call()]).toEqual([undefined, undefined, undefined])
    expect(call()).toEqual(rejected(20))
    await clock.advance(19_000)
    expect(call()).toEqual(rejected(1))
    await clock.advance(1_000)
    expect(call()).toBeUndefined()
    expect(call()).toEqual(rejected(20))
    await clock.advance(3_600_000) // never more than a full bucket
    expect([call(), call(), call()]).toEqual([undefined, undefined, undefined])
    expect(call()).toEqual(rejected(20))
  })

  it('of users are counted by principal', () => {
    const { call } = start([limit('user', 1)])
    expect(call('echo', 'ada')).toBeUndefined()
    expect(call('echo', 'bob')).toBeUndefined()
    expect(call('echo', 'ada')).toEqual(rejected(60))
  })

  it('are taken together or not at all', async () => {
    const { clock, call } = start([limit('server', 2), limit('tool', 1, { tool: 'slow', periodMs: 600_000 })])
    expect(call('slow')).toBeUndefined()
    expect(call('slow')).toEqual(rejected(600)) // and takes nothing from the server's bucket
    expect(call('echo')).toBeUndefined()
    expect(call('echo')).toEqual(rejected(30))
    expect(call('slow')).toEqual(rejected(600)) // the longest wait counts
    await clock.advance(30_000)
    expect(call('echo')).toBeUndefined()
  })

  it.each(['visible', 'real'])('of a tool bind its %s name', (name) => {
    const { send } = start([limit('user-tool', 1, { tool: name })])
    const renamed = () => {
      const { received } = testContext({ id: 1, method: METHODS.toolsCall, params: { name: 'visible' } })
      const { outgoing } = testContext({ id: 1, method: METHODS.toolsCall, params: { name: 'real' } })
      return send({ method: METHODS.toolsCall, params: { name: 'visible' } }, { received, outgoing }).rejection
    }
    expect(renamed()).toBeUndefined()
    expect(renamed()).toEqual(rejected(60))
    expect(send({ method: METHODS.toolsCall, params: { name: 'other' } }).rejection).toBeUndefined()
  })

  it('meter tools/call alone unless methods says more', () => {
    const list = { method: METHODS.toolsList }
    const narrow = start([limit('server', 1)])
    expect([narrow.send(list), narrow.send(list)].map(({ rejection }) => rejection)).toEqual([undefined, undefined])
    const wide = start([limit('server', 1)], { methods: [METHODS.toolsList] })
    expect(wide.send(list).rejection).toBeUndefined()
    expect(wide.send(list).rejection).toEqual(rejected(60))
    expect(wide.call()).toEqual(rejected(60))
    expect(wide.send({ id: undefined, method: 'notifications/initialized' }).rejection).toBeUndefined()
  })

  it('tell audit which one was reached', () => {
    const { send } = start([limit('server', 5), limit('user', 1)])
    const message = { method: METHODS.toolsCall, params: { name: 'echo' } }
    expect(send(message).context.rateLimit).toEqual({ reached: undefined })
    expect(send(message).context.rateLimit).toEqual({ reached: 'user' })
    expect(send({ method: METHODS.ping }).context.rateLimit).toBeUndefined()
  })

  it('remember so many users, the most recent ones', () => {
    const { call } = start([limit('user', 1)], { maxUsers: 2 })
    for (const user of ['a', 'b', 'a', 'c']) call('echo', user)
    expect([call('echo', 'a'), call('echo', 'c')]).toEqual([rejected(60), rejected(60)])
    expect(call('echo', 'b')).toBeUndefined()
  })

  it('make no promise and no timer', () => {
    const { middleware } = start([limit('server', 1_000), limit('user', 1_000), limit('tool', 1_000, { tool: 'echo' })])
    const context = testContext({ id: 1, method: METHODS.toolsCall, params: { name: 'echo' } })
    const made: string[] = []
    const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
    const answers = new Set<unknown>()
    for (let i = 0; i < 100; i++) answers.add(middleware.message?.(context))
    hook.disable()
    expect(made).toEqual([])
    expect(answers).toEqual(new Set([undefined]))
  })
})
