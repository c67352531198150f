import { describe, expect, it } from 'vitest'
import { decideSync, type SyncQuestion } from './sync-decision.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const ago = (ms: number) => new Date(now - ms).toISOString()
const HOUR = 3_600_000
const complete = { phase: 'Complete', lastAttempt: ago(HOUR / 2), lastSyncTime: ago(HOUR / 2), attemptCount: 0 } as const
const failed = { phase: 'Failed', lastAttempt: ago(10_000), attemptCount: 1 } as const
const base: SyncQuestion = {
  known: complete,
  interval: undefined,
  trigger: undefined,
  doneTrigger: undefined,
  changed: false,
  damaged: false,
  now,
}

describe('decideSync', () => {
  it.each<[string, Partial<SyncQuestion>, string | number | undefined]>([
    ['syncs what was never synced', { known: undefined }, 'first'],
    ['[002-271] does not repeat without an interval', {}, undefined],
    ['[002-269] repeats after the interval', { interval: '20m' }, 'interval'],
    ['waits for the rest of the interval, also after a restart', { interval: '1h' }, HOUR / 2],
    ['[002-272] syncs for a trigger', { trigger: '1' }, 'manual'],
    ['[002-273] syncs for another trigger', { trigger: '2', doneTrigger: '1' }, 'manual'],
    ['never syncs twice for one trigger', { trigger: '1', doneTrigger: '1' }, undefined],
    ['[002-275] does nothing without a trigger value', { trigger: undefined, doneTrigger: '1' }, undefined],
    ['syncs another source or filter at once', { changed: true }, 'changed'],
    ['repairs edited data at once', { damaged: true }, 'damaged'],
    ['gives the cache time to see its own write', { damaged: true, known: { ...complete, lastSyncTime: ago(1_000) } }, 4_000],
    ['retries a failure after 30 s', { known: failed }, 20_000],
    ['doubles the wait', { known: { ...failed, attemptCount: 3 } }, 110_000],
    ['waits 5 minutes at most', { known: { ...failed, attemptCount: 50 } }, 290_000],
    ['retries when the wait is over', { known: { ...failed, lastAttempt: ago(40_000) } }, 'retry'],
    ['syncs for a trigger although the last attempt failed', { known: failed, trigger: '1' }, 'manual'],
    ['begins again where an operator was killed', { known: { phase: 'Syncing' } }, 'retry'],
  ])('%s', (_title, change, expected) => {
    const decision = decideSync({ ...base, ...change })
    expect(decision.sync ? decision.reason : decision.nextMs).toBe(expected)
  })
})
