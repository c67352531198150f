import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventLog, type Replay, streamOfEvent } from './event-log.ts'

const version = '2025-11-25'
const dataOf = (replay: Replay) => (replay.outcome === 'replay' ? replay.events.map((event) => event.data) : replay.outcome)

describe('EventLog', () => {
  it('replays what came later on the same stream, and only that', () => {
    const log = new EventLog({ version })
    const [a, b] = [log.open(), log.open()]
    const a1 = log.append(a, 'a1')
    log.append(b, 'b1')
    const a2 = log.append(a, 'a2')
    log.append(a, 'a3')
    expect(a1).toEqual({ id: expect.any(String), event: 'message', data: 'a1' })
    expect(dataOf(log.replayAfter(a1?.id ?? ''))).toEqual(['a2', 'a3'])
    expect(dataOf(log.replayAfter(a2?.id ?? ''))).toEqual(['a3'])
    expect(log.replayAfter(a2?.id ?? '')).toMatchObject({ stream: a, hasEnded: false })
  })

  it('replays all after the priming event, and says when the stream has ended', () => {
    const log = new EventLog({ version })
    const stream = log.open()
    const prime = log.prime(stream)
    expect(prime).toEqual({ id: expect.any(String), data: '' })
    expect(dataOf(log.replayAfter(prime?.id ?? ''))).toEqual([])
    log.append(stream, 'answer')
    log.end(stream)
    expect(log.replayAfter(prime?.id ?? '')).toMatchObject({ outcome: 'replay', hasEnded: true, events: [{ data: 'answer' }] })
    expect(log.append(stream, 'too late')).toBeUndefined()
  })

  it.each([
    ['2024-11-05', false],
    ['2025-03-26', false],
    ['2025-06-18', false],
    ['2025-11-25', true],
  ] as const)('primes a client of %s: %s', (version, primes) => {
    const log = new EventLog({ version })
    expect(log.prime(log.open()) !== undefined).toBe(primes)
    expect(log.prime('no such stream')).toBeUndefined()
  })

  it('has ids that are visible ASCII, name their stream, and are never given twice in a session', () => {
    const log = new EventLog({ version })
    const ids = new Set<string>()
    for (let i = 0; i < 50; i++) {
      const stream = log.open()
      for (const event of [log.prime(stream), log.append(stream, 'x'), log.append(stream, 'y')]) {
        expect(event?.id).toMatch(/^[\x21-\x7e]+$/)
        expect(event?.id?.startsWith(`${stream}.`)).toBe(true)
        expect(streamOfEvent(event?.id ?? '')).toBe(stream)
        ids.add(event?.id ?? '')
      }
    }
    expect(ids.size).toBe(150)
    for (const other of ['', 'x', 'a.b.c', 'AAAAAAAA.1', 'AAAAAAAA.1.2.3', 'AAAAAAAA.1. 2']) expect(streamOfEvent(other)).toBeUndefined()
  })

  it('does not know ids of others', () => {
    const log = new EventLog({ version })
    const other = new EventLog({ version })
    const stream = log.open()
    const id = log.append(stream, 'x')?.id ?? ''
    const foreign = other.append(other.open(), 'x')?.id ?? ''
    for (const unknown of [
      foreign,
      '',
      'x',
      `${id}0`,
      `${id}.1`,
      `${stream}.0`,
      stream,
      (id.startsWith('A') ? 'B' : 'A') + id.slice(1),
      `${stream}.zzzzzzzzzzzz`,
      `${stream}.-1`,
    ]) {
      expect(log.replayAfter(unknown), unknown).toEqual({ outcome: 'unknown' })
    }
  })

  it('says that events are lost rather than replaying with a hole', () => {
    const log = new EventLog({ version, maxEvents: 3 })
    const stream = log.open()
    const ids = ['1', '2', '3', '4', '5'].map((data) => log.append(stream, data)?.id ?? '')
    expect(log.size).toBe(3)
    expect(ids.map((id) => dataOf(log.replayAfter(id)))).toEqual(['lost', ['3', '4', '5'], ['4', '5'], ['5'], []])
  })

  it('forgets a stream that has ended once its events are gone', () => {
    const log = new EventLog({ version, maxEvents: 1 })
    const [a, b] = [log.open(), log.open()]
    const last = log.append(a, 'a')?.id ?? ''
    log.end(a)
    expect(log.replayAfter(last).outcome).toBe('replay')
    log.append(b, 'b')
    expect(log.replayAfter(last)).toEqual({ outcome: 'lost', stream: a })
    log.end('no such stream')
  })

  it('does not give up all others for one event that is too large to keep', () => {
    const log = new EventLog({ version, maxBytes: 10 })
    const [a, b] = [log.open(), log.open()]
    const a1 = log.append(a, '12345')?.id ?? ''
    log.append(a, '6')
    const b1 = log.append(b, 'b')?.id ?? ''
    const large = log.append(b, 'éééééé')?.id ?? ''
    expect(dataOf(log.replayAfter(a1))).toEqual(['6'])
    expect(dataOf(log.replayAfter(b1))).toBe('lost')
    expect(dataOf(log.replayAfter(large))).toEqual([])
    expect(log.bytes).toBe(7)
  })

  it('remembers the loss of a large event when older ones are pushed out later', () => {
    const log = new EventLog({ version, maxEvents: 1, maxBytes: 3 })
    const [a, b] = [log.open(), log.open()]
    const first = log.append(a, '1')?.id ?? ''
    log.append(a, 'large')
    log.append(b, '2')
    expect(log.replayAfter(first)).toEqual({ outcome: 'lost', stream: a })
  })

  it('is exact within its bounds, whatever happens', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('append' as const), stream: fc.nat(3), size: fc.nat(12) }),
      fc.record({ do: fc.constant('end' as const), stream: fc.nat(3), size: fc.constant(0) }),
    )
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 40 }),
        (steps, maxEvents, maxBytes) => {
          const log = new EventLog({ version, maxEvents, maxBytes })
          const streams = [log.open(), log.open(), log.open(), log.open()]
          const sent = streams.map((): { id: string; data: string }[] => [])
          for (const [n, { do: what, stream, size }] of steps.entries()) {
            const data = `${n}`.padEnd(size, '.')
            const id = streams[stream] ?? ''
            if (what === 'end') log.end(id)
            else {
              const event = log.append(id, data)
              if (event) sent[stream]?.push({ id: event.id ?? '', data })
            }
            expect(log.size).toBeLessThanOrEqual(maxEvents)
            expect(log.bytes).toBeLessThanOrEqual(maxBytes)
          }
          for (const events of sent) {
            for (const [at, { id }] of events.entries()) {
              const replay = log.replayAfter(id)
              if (replay.outcome === 'lost') continue
              expect(dataOf(replay)).toEqual(events.slice(at + 1).map(({ data }) => data))
            }
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})
