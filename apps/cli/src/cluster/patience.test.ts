import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { KubeApiError } from '@thv/kube/client/kube-api-error'
import { describe, expect, it } from 'vitest'
import { createPatience } from './patience.ts'

const unreachable = (details: object) =>
  new ThvError('kube_unreachable', 'apply pods default/x: no connection', { details: { ...details } })
const answered = (status: number) =>
  new KubeApiError({ call: { verb: 'apply', target: 'pods default/x' }, status, body: { message: 'too busy' } })

function setUp(withinMs = 60_000) {
  const clock = new TestClock()
  const stop = new AbortController()
  const patience = createPatience({ withinMs, clock, signal: stop.signal, random: () => 0 })
  const calls: number[] = []
  const failing = (errors: readonly Error[]) => async () => {
    const error = errors[calls.length]
    calls.push(clock.monotonic())
    if (error !== undefined) throw error
    return 'done'
  }
  return { clock, stop, patience, calls, failing }
}

describe('patience', () => {
  it.each([
    ['a refused connection', unreachable({ code: 'ECONNREFUSED' })],
    ['a connection that takes too long', unreachable({ code: 'UND_ERR_CONNECT_TIMEOUT' })],
    ['a call without an answer', unreachable({ timeoutMs: 30_000 })],
    ['429', answered(429)],
    ['503', answered(503)],
  ])('repeats after %s, ever later', async (_, error) => {
    const { clock, patience, calls, failing } = setUp()
    const result = patience(failing(Array.from({ length: 8 }, () => error)))
    await clock.advance(60_000)
    expect(await result).toBe('done')
    const waits = calls.slice(1).map((at, index) => at - (calls[index] ?? 0))
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  })

  it('ends with what it waited for, and one deadline holds for all calls', async () => {
    const { clock, patience, calls, failing } = setUp(1_000)
    const all = Array.from({ length: 50 }, () => unreachable({ code: 'ECONNREFUSED' }))
    const first = expect(patience(failing(all))).rejects.toMatchObject({
      code: 'timeout',
      message: 'the API server did not answer within 1 s (4 attempts): apply pods default/x: no connection',
    })
    await clock.advance(1_000)
    await first
    expect(calls).toEqual([0, 100, 300, 700])
    await expect(patience(failing(all))).rejects.toMatchObject({ code: 'timeout', message: expect.stringContaining('(1 attempt)') })
  })

  it.each([
    ['a certificate that is wrong', unreachable({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })],
    ['403', answered(403)],
    ['422', answered(422)],
    ['an error of the program', new TypeError('oops')],
  ])('does not repeat after %s', async (_, error) => {
    const { patience, calls, failing } = setUp()
    await expect(patience(failing([error]))).rejects.toBe(error)
    expect(calls).toEqual([0])
  })

  it('ends with Ctrl-C', async () => {
    const { clock, stop, patience, calls, failing } = setUp()
    const ended = expect(patience(failing(Array.from({ length: 9 }, () => answered(503))))).rejects.toThrow()
    await clock.advance(250)
    stop.abort()
    await ended
    expect(calls).toEqual([0, 100])
  })
})
