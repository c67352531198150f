import { TestClock } from '@thv/kernel/clock'
import { isThvError, type ThvError } from '@thv/kernel/errors'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LeaseApi, type LeaseLine } from '../testing/lease-api.ts'
import { type LeaseOptions, runWithLease } from './lease-election.ts'

describe('runWithLease', () => {
  let api: LeaseApi
  let clock: TestClock
  /** Starts and stops of work, in order: `+a` began, `-a` had to stop. */
  let diary: { at: number; what: string }[]
  let candidates: Candidate[]
  beforeEach(() => {
    api = new LeaseApi()
    clock = new TestClock()
    diary = []
    candidates = []
  })
  afterEach(async () => {
    for (const { line, stop } of candidates) {
      line.frozen?.resolve()
      line.frozen = undefined
      stop.abort()
    }
    await clock.advance(60_000)
    await Promise.allSettled(candidates.map(({ done }) => done))
    expect(clock.pending).toBe(0)
  })

  interface Candidate {
    readonly line: LeaseLine
    readonly stop: AbortController
    readonly done: Promise<void>
    readonly lost: ThvError[]
    readonly leaders: string[]
    readonly log: string[]
    working: number
  }

  function candidate(identity: string, options: Partial<LeaseOptions> & { stopMs?: number; clock?: TestClock } = {}): Candidate {
    const { stopMs = 0, ...rest } = options
    const line = api.line()
    const stop = new AbortController()
    const lost: ThvError[] = []
    const leaders: string[] = []
    const log: string[] = []
    const own = options.clock ?? clock
    const self: Candidate = {
      line,
      stop,
      lost,
      leaders,
      log,
      working: 0,
      done: Promise.resolve().then(() =>
        runWithLease({
          client: line.client,
          namespace: 'team',
          name: 'x',
          identity,
          clock: own,
          signal: stop.signal,
          onStart: async (signal) => {
            diary.push({ at: clock.monotonic(), what: `+${identity}` })
            self.working++
            await own.sleep(Number.POSITIVE_INFINITY, signal).catch(() => {})
            diary.push({ at: clock.monotonic(), what: `-${identity}` })
            if (stopMs > 0) await own.sleep(stopMs)
            self.working--
          },
          onLost: (reason) => lost.push(reason),
          onNewLeader: (leader) => leaders.push(leader),
          log: { info: (message) => log.push(message), warn: (message, fields) => log.push(`${message} ${fields?.['error'] ?? ''}`) },
          ...rest,
        }),
      ),
    }
    candidates.push(self)
    return self
  }

  const whatHappened = () => diary.map(({ what }) => what)
  const timeOf = (what: string) => diary.find((entry) => entry.what === what)?.at ?? Number.NaN

  it('creates the lease, works, renews it and releases it at a stop', async () => {
    const a = candidate('a')
    await clock.advance(0)
    expect(whatHappened()).toEqual(['+a'])
    expect(api.lease?.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 })
    expect(api.lease?.spec?.renewTime).toMatch(/^2026-01-01T00:00:00\.000\d{3}Z$/)
    const acquired = api.lease?.spec?.acquireTime
    await clock.advance(60_000)
    expect(api.writes).toBeGreaterThan(20)
    expect(api.reads).toBe(1) // a renewal is one request
    expect(api.lease?.spec?.acquireTime).toBe(acquired)
    a.stop.abort()
    await clock.advance(0)
    await a.done
    expect(api.lease?.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 })
    expect(a.lost).toEqual([])
  })

  it('lets one of many work, and the next one at once after a release', async () => {
    const all = ['a', 'b', 'c'].map((identity) => candidate(identity))
    await clock.advance(120_000)
    expect(whatHappened()).toHaveLength(1)
    const leader = all.find(({ working }) => working === 1)
    leader?.stop.abort()
    await clock.advance(2_400)
    expect(all.filter(({ working }) => working === 1)).toHaveLength(1)
    expect(whatHappened()).toHaveLength(3)
    expect(api.lease?.spec?.leaseTransitions).toBeGreaterThanOrEqual(1)
  })

  it('keeps the lease as long as the work takes to stop', async () => {
    const a = candidate('a', { stopMs: 60_000 })
    await clock.advance(0)
    candidate('b')
    a.stop.abort()
    await clock.advance(59_000)
    expect(whatHappened()).toEqual(['+a', '-a'])
    await clock.advance(4_000)
    await a.done
    expect(whatHappened()).toEqual(['+a', '-a', '+b'])
  })

  it('replaces a leader that vanished, only after the lease has run out', async () => {
    const a = candidate('a')
    await clock.advance(0)
    const b = candidate('b')
    await clock.advance(6_000)
    const before = clock.monotonic()
    a.line.frozen = Promise.withResolvers() // nothing of a reaches the server any more
    await clock.advance(30_000)
    expect(b.working).toBe(1)
    expect(timeOf('+b') - before).toBeGreaterThan(15_000 - 2_400)
    expect(b.leaders).toEqual(['a', 'b'])
  })

  it.each(['down', 'frozen'] as const)('stops its work before another begins when the line is %s', async (how) => {
    const a = candidate('a')
    await clock.advance(0)
    candidate('b')
    await clock.advance(20_000)
    if (how === 'down') a.line.down = true
    else a.line.frozen = Promise.withResolvers()
    await clock.advance(60_000)
    expect(whatHappened()).toEqual(['+a', '-a', '+b'])
    expect(timeOf('+b') - timeOf('-a')).toBeGreaterThan(1_000)
    expect(a.lost.map(({ code }) => code)).toEqual(['lease_lost'])
  })

  it('is not misled by writes that arrive late', async () => {
    const a = candidate('a')
    await clock.advance(0)
    const b = candidate('b')
    await clock.advance(10_000)
    const frozen = Promise.withResolvers<void>()
    a.line.frozen = frozen
    await clock.advance(9_000)
    a.line.frozen = undefined
    frozen.resolve() // what a had sent is carried out now
    await clock.advance(60_000)
    expect(a.working + b.working).toBe(1)
  })

  it('goes on when answers are lost although the writes were made', async () => {
    const a = candidate('a')
    await clock.advance(0)
    for (let n = 0; n < 5; n++) {
      a.line.loseAnswers = true
      await clock.advance(4_000)
      a.line.loseAnswers = false
      await clock.advance(4_000)
    }
    expect(whatHappened()).toEqual(['+a'])
    expect(a.lost).toEqual([])
  })

  it('stops at once when somebody else has the lease, and takes it back when that one is gone', async () => {
    const a = candidate('a')
    await clock.advance(5_000)
    api.steal('thief')
    await clock.advance(2_400)
    expect(whatHappened()).toEqual(['+a', '-a'])
    expect(a.lost[0]?.message).toBe('lease team/x: taken by "thief"')
    await clock.advance(30_000)
    expect(whatHappened()).toEqual(['+a', '-a', '+a'])
    expect(a.leaders).toEqual(['a', 'thief', 'a'])
  })

  it('makes a deleted lease again', async () => {
    const a = candidate('a')
    await clock.advance(5_000)
    api.lease = undefined
    await clock.advance(5_000)
    expect(api.lease).toMatchObject({ spec: { holderIdentity: 'a' } })
    expect(a.lost).toEqual([])
  })

  it('does not begin again before the old work has ended', async () => {
    const a = candidate('a', { stopMs: 40_000 })
    await clock.advance(1_000)
    a.line.down = true
    await clock.advance(10_000)
    expect(a.lost).toHaveLength(1)
    a.line.down = false
    await clock.advance(30_000)
    expect(a.working).toBe(1)
    expect(whatHappened()).toEqual(['+a', '-a'])
    await clock.advance(20_000)
    expect(whatHappened()).toEqual(['+a', '-a', '+a'])
    expect(a.working).toBe(1)
  })

  it('takes a second process of the same identity for somebody else', async () => {
    candidate('same')
    candidate('same')
    await clock.advance(120_000)
    expect(whatHappened()).toEqual(['+same'])
  })

  it('does not look at the wall clock: neither skew nor jumps matter', async () => {
    const a = candidate('a')
    await clock.advance(0)
    candidate('b')
    clock.jump(3_600_000)
    await clock.advance(60_000)
    clock.jump(-7_200_000)
    await clock.advance(60_000)
    expect(whatHappened()).toEqual(['+a'])
    expect(a.lost).toEqual([])
  })

  it('believes the duration that the holder has written', async () => {
    candidate('a', { leaseDurationMs: 120_000 })
    await clock.advance(0)
    const [a] = candidates
    const b = candidate('b')
    await clock.advance(3_000)
    if (a) a.line.frozen = Promise.withResolvers()
    await clock.advance(100_000)
    expect(b.working).toBe(0)
    await clock.advance(30_000)
    expect(b.working).toBe(1)
  })

  it('ends when the work ends, and rejects when it fails', async () => {
    const failing = candidate('a', { onStart: async () => Promise.reject(new Error('no')) })
    await expect(failing.done).rejects.toThrow('no')
    expect(api.lease?.spec?.holderIdentity).toBe('')
    const finished = candidate('b', { onStart: async () => {} })
    await clock.advance(3_000)
    await finished.done
    expect(api.lease?.spec?.holderIdentity).toBe('')
  })

  it('leaves the lease to run out without releaseOnStop', async () => {
    const a = candidate('a', { releaseOnStop: false })
    await clock.advance(0)
    a.stop.abort()
    await a.done
    expect(api.lease?.spec?.holderIdentity).toBe('a')
  })

  it('ends promptly when it is stopped before it has the lease', async () => {
    const a = candidate('a')
    await clock.advance(0)
    const b = candidate('b')
    await clock.advance(1_000)
    b.stop.abort()
    await b.done
    expect(a.working).toBe(1)
    expect(api.lease?.spec?.holderIdentity).toBe('a')
  })

  it('survives listeners that throw', async () => {
    const explode = () => {
      throw new Error('listener')
    }
    const a = candidate('a', { onLost: explode, onNewLeader: explode })
    await clock.advance(1_000)
    expect(a.working).toBe(1)
    a.line.down = true
    await clock.advance(11_000)
    expect(a.log.filter((line) => line.includes('a listener of the lease failed listener'))).toHaveLength(2)
  })

  it('says once why it cannot get the lease', async () => {
    const line = api.line()
    line.down = true
    const a = candidate('a', { client: line.client })
    await clock.advance(60_000)
    expect(a.log).toEqual(['lease x cannot be read or taken connection refused'])
    line.down = false
    await clock.advance(3_000)
    expect(a.working).toBe(1)
  })

  it('refuses times that cannot be kept', async () => {
    await expect(candidate('a', { renewDeadlineMs: 15_000 }).done).rejects.toThrow(RangeError)
    await expect(candidate('a', { retryPeriodMs: 9_000 }).done).rejects.toThrow(RangeError)
    await expect(candidate('').done).rejects.toThrow(RangeError)
  })

  it('never lets two work at a time, whatever the lines do', async () => {
    const all = ['a', 'b', 'c'].map((identity) => candidate(identity))
    let seed = 7
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647
      return seed / 2_147_483_647
    }
    for (let n = 0; n < 400; n++) {
      const { line } = all[Math.floor(random() * 3)] as Candidate
      const roll = random()
      if (roll < 0.2) line.down = !line.down
      else if (roll < 0.4) line.loseAnswers = !line.loseAnswers
      else if (roll < 0.6 && line.frozen === undefined) line.frozen = Promise.withResolvers()
      else {
        line.frozen?.resolve()
        line.frozen = undefined
      }
      for (let step = 0; step < 8; step++) {
        await clock.advance(random() * 1_500)
        expect(all.filter(({ working }) => working > 0).length).toBeLessThanOrEqual(1)
      }
    }
    expect(diary.length).toBeGreaterThan(10)
    expect(all.every(({ lost }) => lost.every((reason) => isThvError(reason, 'lease_lost')))).toBe(true)
  })
})
