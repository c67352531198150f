import { TestClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import { EraCache, type EraCacheOptions, type FinalVerdict } from './era-cache.ts'
import { parseText } from './parse-body.ts'

const never = new AbortController().signal
const legacy: FinalVerdict = { verdict: 'legacy' }
const modern: FinalVerdict = { verdict: 'modern' }
const away: FinalVerdict = { verdict: 'inconclusive', reason: 'unavailable' }

interface Flight {
  key: string
  signal: AbortSignal
  resolve(verdict: FinalVerdict): void
  reject(error: Error): void
}

/** A cache whose probes the test lands by hand. */
function setUp(options: Partial<EraCacheOptions> = {}) {
  const clock = new TestClock()
  const flights: Flight[] = []
  const changes: string[] = []
  const cache = new EraCache({
    clock,
    random: () => 0,
    onChange: (key, { verdict }) => changes.push(`${key} ${verdict}`),
    probe: (key, signal) => new Promise((resolve, reject) => flights.push({ key, signal, resolve, reject })),
    ...options,
  })
  const probed = async (key: string, verdict: FinalVerdict) => {
    const answer = cache.get(key, never)
    flights.at(-1)?.resolve(verdict)
    return await answer
  }
  return { cache, clock, flights, changes, probed }
}

describe('EraCache', () => {
  it('probes once for all who ask at the same time, and then not again', async () => {
    const { cache, flights } = setUp()
    const answers = Promise.all([cache.get('a', never), cache.get('a', never), cache.get('a', never)])
    expect(flights).toHaveLength(1)
    flights[0]?.resolve(modern)
    expect(await answers).toEqual([modern, modern, modern])
    expect(await cache.get('a', never)).toEqual(modern)
    expect(flights).toHaveLength(1)
  })

  it('keeps backends apart', async () => {
    const { cache, flights, probed } = setUp()
    await probed('a', modern)
    await probed('b', legacy)
    expect(flights.map(({ key }) => key)).toEqual(['a', 'b'])
    expect([cache.peek('a'), cache.peek('b'), cache.peek('c')]).toEqual([modern, legacy, undefined])
  })

  it('lets a legacy verdict end, a bit early by chance, and a modern one not', async () => {
    for (const [random, life] of [
      [0, 600_000],
      [0.5, 540_000],
    ] as const) {
      const { cache, clock, probed } = setUp({ random: () => random })
      await probed('old', legacy)
      await probed('new', modern)
      await clock.advance(life - 1)
      expect(cache.peek('old')).toEqual(legacy)
      await clock.advance(1)
      expect(cache.peek('old')).toBeUndefined()
      await clock.advance(10 ** 9)
      expect(cache.peek('new')).toEqual(modern)
    }
  })

  it('keeps a failure as long as a legacy verdict, and nothing that is inconclusive', async () => {
    const { cache, flights, clock, probed } = setUp({ legacyTtlMs: 1_000 })
    const fail: FinalVerdict = { verdict: 'fail', reason: 'no_common_version' }
    await probed('a', fail)
    expect(cache.peek('a')).toEqual(fail)
    await clock.advance(1_000)
    expect(cache.peek('a')).toBeUndefined()
    expect(await probed('b', away)).toEqual(away)
    expect(cache.peek('b')).toBeUndefined()
    await probed('b', modern)
    expect(flights).toHaveLength(3)
  })

  it('gives an error of the probe to all waiting callers, and probes again next time', async () => {
    const { cache, flights } = setUp()
    const answers = Promise.allSettled([cache.get('a', never), cache.get('a', never)])
    flights[0]?.reject(new Error('bug'))
    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    const next = cache.get('a', never)
    flights[1]?.resolve(legacy)
    expect(await next).toEqual(legacy)
  })

  it('lets one caller leave without ending the probe of the others', async () => {
    const { cache, flights } = setUp()
    const leaver = new AbortController()
    const left = cache.get('a', leaver.signal)
    const stays = cache.get('a', never)
    leaver.abort(new Error('left'))
    await expect(left).rejects.toThrow('left')
    expect(flights[0]?.signal.aborted).toBe(false)
    flights[0]?.resolve(modern)
    expect(await stays).toEqual(modern)
    await expect(cache.get('a', leaver.signal)).rejects.toThrow('left')
  })

  it('has a limit for a probe that never ends, and no timer left after one that does', async () => {
    const { cache, flights, clock, probed } = setUp({ probeTimeoutMs: 5_000 })
    const stuck = cache.get('a', never)
    const outcome = expect(stuck).rejects.toSatisfy((error) => isThvError(error, 'timeout'))
    await clock.advance(5_000)
    await outcome
    expect(flights[0]?.signal.aborted).toBe(true)
    await probed('b', modern)
    expect(clock.pending).toBe(0)
  })

  it('probes again after forget, and does not believe the answer that was on its way', async () => {
    const { cache, flights } = setUp()
    const before = cache.get('a', never)
    cache.forget('a')
    const after = cache.get('a', never)
    expect(flights).toHaveLength(2)
    flights[0]?.resolve(legacy)
    expect(await before).toEqual(legacy)
    expect(cache.peek('a')).toBeUndefined()
    flights[1]?.resolve(modern)
    expect(await after).toEqual(modern)
    expect(cache.peek('a')).toEqual(modern)
    cache.forget('a')
    expect(cache.peek('a')).toBeUndefined()
  })

  it('tells of a change once', async () => {
    const { cache, changes, clock, probed } = setUp()
    await probed('a', legacy)
    await clock.advance(600_000)
    await probed('a', legacy)
    cache.forget('a')
    await probed('a', legacy)
    expect(changes).toEqual(['a legacy'])
    cache.forget('a')
    await probed('a', modern)
    expect(changes).toEqual(['a legacy', 'a modern'])
  })

  it('is bounded, and lets go of what was not asked for', async () => {
    const { cache, probed } = setUp({ maxEntries: 2 })
    await probed('a', modern)
    await probed('b', modern)
    cache.peek('a')
    await probed('c', modern)
    expect([cache.peek('a'), cache.peek('b'), cache.peek('c')]).toEqual([modern, undefined, modern])
  })

  it('drops a verdict that an answer contradicts, and corrects one that it disproves', async () => {
    const { cache, changes, probed } = setUp()
    const ok = parseText('{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}')
    await probed('m', modern)
    expect(cache.observe('m', { method: 'tools/call', status: 200, body: ok })).toBeUndefined()
    expect(cache.peek('m')).toEqual(modern)
    expect(cache.observe('m', { method: 'tools/call', status: 404, body: undefined })).toEqual({ era: undefined, mayRetry: true })
    expect(cache.peek('m')).toBeUndefined()
    expect(cache.observe('m', { method: 'tools/call', status: 404, body: undefined })).toBeUndefined()

    await probed('l', legacy)
    const handshake = parseText('{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2026-07-28"}}')
    expect(cache.observe('l', { method: 'initialize', status: 200, body: handshake })).toEqual({ era: 'modern', mayRetry: true })
    expect(cache.peek('l')).toEqual(modern)
    expect(changes).toEqual(['m modern', 'l legacy', 'l modern'])
  })

  it('stops when closed', async () => {
    const { cache, flights } = setUp()
    const waiting = cache.get('a', never)
    const outcome = expect(waiting).rejects.toSatisfy((error) => isThvError(error, 'aborted'))
    cache.close()
    await outcome
    expect(flights[0]?.signal.aborted).toBe(true)
    await expect(cache.get('b', never)).rejects.toSatisfy((error) => isThvError(error, 'aborted'))
    expect(flights).toHaveLength(1)
  })
})
