import { getEventListeners } from 'node:events'
import { DEFAULT_FETCH_LIMITS, type FetchedEntry, type FetchResult } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { afterEach, describe, expect, it } from 'vitest'
import type { SyncConfig } from '../config/registry-config.ts'
import { createFakeHandler, eventually, fetchedEntry, fileSource, fullResult, testConfig } from '../engine/testing/engine-fixture.ts'
import type { RegistryStore, SourceRecord, StoredEntry, SyncOutcome } from '../store/registry-store.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { recordingLog } from '../testing/run-registry.ts'
import { startSyncLoop } from './sync-loop.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const MINUTE = 60_000

describe('the sync of sources', () => {
  it('fetches all that is due at the same time, but no more than the bound', async () => {
    const rig = await rigOf(
      Array.from({ length: 9 }, (_, i) => fileSource(`s${i}`)),
      { parallel: 3 },
    )
    const gates = Array.from({ length: 9 }, () => Promise.withResolvers<FetchResult>())
    for (const [i, gate] of gates.entries()) rig.handler.data.set(`s${i}`, () => gate.promise)
    rig.start()
    await eventually(rig.clock, () => rig.handler.running.now === 3)
    await rig.clock.advance(MINUTE)
    expect(rig.handler.calls).toHaveLength(3)
    for (const gate of gates) gate.resolve(fullResult([]))
    await eventually(rig.clock, () => rig.handler.calls.length === 9)
    expect(rig.handler.running.most).toBe(3)
  })

  it('fetches at each interval and writes only what changed [001-062]', async () => {
    const rig = await rigOf([fileSource('a')])
    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0'), fetchedEntry('x/two', '1.0.0')])
    rig.start()
    await rig.synced('a')
    const first = await rig.store.revision()
    await rig.clock.advance(10 * MINUTE)
    expect(rig.handler.calls.length).toBeGreaterThanOrEqual(10)
    expect(rig.handler.calls.length).toBeLessThanOrEqual(12)
    expect(await rig.store.revision()).toEqual(first)
    expect(rig.outcomes.slice(1).every(({ kind }) => kind === 'unchanged')).toBe(true)

    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0', { document: { title: 'another' } }), fetchedEntry('x/three', '1.0.0')])
    await rig.clock.advance(2 * MINUTE)
    const changed = rig.outcomes.filter((outcome) => outcome.kind === 'changed')
    expect(changed).toHaveLength(2)
    expect(changed[1]?.upserts.map(({ name }) => name)).toEqual(['x/one', 'x/three'])
    expect(changed[1]?.gone).toEqual([{ name: 'x/two', version: '1.0.0' }])
    expect(await rig.names('a')).toEqual(['x/one', 'x/three', 'x/two (deleted)'])
  })

  it('keeps the last good data of a source that fails, and tries again sooner at first, then no sooner than the interval', async () => {
    const rig = await rigOf([fileSource('a')])
    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0')])
    rig.start()
    await rig.synced('a')
    const times: number[] = []
    rig.handler.data.set('a', async () => {
      times.push(rig.clock.monotonic())
      throw new ThvError('source_failed', 'no answer from https://me:secret@host/x with Bearer abcdefgh1234567')
    })
    await rig.clock.advance(30 * MINUTE)
    const { sync } = await rig.record('a')
    expect(sync).toMatchObject({ phase: 'failed', serverCount: 1, attemptCount: times.length })
    expect(sync.message).toBe('Fetch failed: no answer from https://[redacted]@host/x with Bearer [redacted]')
    expect(await rig.names('a')).toEqual(['x/one'])
    const waits = times.slice(1).map((time, i) => time - (times[i] ?? 0))
    // Of 1 s, doubled each time, one half is up to chance; this test's chance takes none.
    expect(waits.slice(0, 5).map((wait) => Math.round(wait / 1000))).toEqual([1, 2, 4, 8, 16])
    expect(Math.max(...waits)).toBeLessThanOrEqual(MINUTE + 100)

    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0')])
    await rig.clock.advance(2 * MINUTE)
    expect((await rig.record('a')).sync).toMatchObject({ phase: 'complete', attemptCount: 0, serverCount: 1 })
    expect(rig.outcomes.filter(({ kind }) => kind === 'changed')).toHaveLength(1)
  })

  it('tells a failure that lasts ever more rarely, and that it is over', async () => {
    const rig = await rigOf([fileSource('a')])
    let message = 'no answer'
    rig.handler.data.set('a', async () => {
      throw new ThvError('source_failed', message)
    })
    rig.start()
    const told = () => rig.lines.filter(({ level }) => level === 'warn').map((line) => line['attempt'])
    await rig.clock.advance(20 * MINUTE)
    expect(rig.handler.calls.length).toBeGreaterThan(16)
    expect(told()).toEqual([1, 2, 4, 8, 16])
    message = 'another reason'
    await rig.clock.advance(2 * MINUTE)
    expect(told()).toHaveLength(6)
    rig.handler.data.set('a', [])
    await rig.clock.advance(2 * MINUTE)
    expect(rig.lines.filter(({ level }) => level === 'info').map(({ msg }) => msg)).toEqual(['synced'])
  })

  it('gives up a fetch that hangs, also one that does not listen', async () => {
    const rig = await rigOf([fileSource('a', { intervalMs: 60 * MINUTE })])
    rig.handler.data.set('a', () => new Promise(() => undefined))
    rig.start({ timeoutMs: 5 * MINUTE })
    await rig.clock.advance(4 * MINUTE)
    expect((await rig.record('a')).sync.phase).toBe('syncing')
    await rig.clock.advance(MINUTE)
    expect((await rig.record('a')).sync).toMatchObject({ phase: 'failed', message: 'Fetch failed: no result within 5m0s' })
  })

  it('writes nothing of an attempt whose lease is lost in the middle, and stops it at once', async () => {
    const rig = await rigOf([fileSource('a')])
    let aborted: unknown
    rig.handler.data.set('a', async ({ signal }) => {
      signal.addEventListener('abort', () => (aborted = signal.reason))
      await rig.clock.sleep(45_000)
      return fullResult([fetchedEntry('x/one', '1.0.0')])
    })
    rig.store.renewLease = async () => false
    rig.start()
    await rig.clock.advance(11_000)
    expect(aborted).toMatchObject({ code: 'lease_lost' })
    await rig.clock.advance(50_000)
    expect(rig.outcomes).toEqual([])
    expect(await rig.names('a')).toEqual([])
  })

  it('holds its lease as long as it works, and over a store that fails for a moment', async () => {
    const rig = await rigOf([fileSource('a')])
    rig.handler.data.set('a', async () => {
      await rig.clock.sleep(100_000)
      return fullResult([fetchedEntry('x/one', '1.0.0')])
    })
    const renew = rig.store.renewLease.bind(rig.store)
    let renewals = 0
    rig.store.renewLease = async (lease, ms) => {
      if (++renewals === 2) throw new ThvError('store_unavailable', 'for a moment')
      return renew(lease, ms)
    }
    rig.start()
    await rig.clock.advance(95_000)
    expect(await rig.store.claimDue({ owner: 'another', leaseMs: 1000, limit: 10 })).toEqual([])
    await rig.synced('a')
    expect(await rig.names('a')).toEqual(['x/one'])
  })

  it('applies a changed filter at once, though the data are the same', async () => {
    const rig = await rigOf([fileSource('a', { intervalMs: 60 * MINUTE })])
    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0'), fetchedEntry('x/two', '1.0.0', { tags: ['old'] })])
    rig.start()
    await rig.synced('a')
    const filtered = fileSource('a', { intervalMs: 60 * MINUTE, filter: { tags: { exclude: ['old'] } } })
    await rig.store.reconcileConfig({ sources: [filtered], registries: [] })
    await eventually(rig.clock, async () => (await rig.names('a')).includes('x/two (deleted)'))
    expect(rig.handler.calls.at(-1)?.state).toBeUndefined()
    expect((await rig.record('a')).sync.serverCount).toBe(1)
  })

  it('rejects an unreadable filter, and keeps the entries', async () => {
    const rig = await rigOf([fileSource('a')])
    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0')])
    rig.start()
    await rig.synced('a')
    await rig.store.reconcileConfig({ sources: [fileSource('a', { filter: { names: { exclude: ['[z-a'] } } })], registries: [] })
    await eventually(rig.clock, async () => (await rig.record('a')).sync.phase === 'failed')
    expect((await rig.record('a')).sync.message).toMatch(/^Filtering failed: /)
    expect(await rig.names('a')).toEqual(['x/one'])
  })

  it('takes of a delta only what came, deleted ones too, and drops what the filter no longer lets through', async () => {
    const rig = await rigOf([fileSource('a', { filter: { tags: { exclude: ['bad'] } } })])
    const all = ['one', 'two', 'three', 'four'].map((name) => fetchedEntry(`x/${name}`, '1.0.0'))
    rig.handler.data.set('a', all)
    rig.start()
    await rig.synced('a')
    const entries: FetchedEntry[] = [
      fetchedEntry('x/one', '1.0.0', { status: 'deleted' }),
      fetchedEntry('x/two', '1.0.0', { tags: ['bad'] }),
      fetchedEntry('x/three', '2.0.0'),
    ]
    rig.handler.data.set('a', async () => ({ kind: 'delta', entries, hash: 'newer', state: { seen: 5 }, problems: [] }))
    await eventually(rig.clock, () => rig.outcomes.length === 2, 2 * MINUTE)
    expect(rig.handler.calls[1]?.state).toEqual({ seen: 4 })
    expect(await rig.names('a')).toEqual(['x/four', 'x/one (deleted)', 'x/three', 'x/three', 'x/two (deleted)'])
  })

  it('reports what was dropped, entries that are there twice too, and says how many there are of many', async () => {
    const rig = await rigOf([fileSource('a')])
    const problem = { entry: 'servers/3', pointer: '/name', message: 'is missing', severity: 'dropped' as const }
    const entries = [fetchedEntry('x/one', '1.0.0'), fetchedEntry('x/one', '1.0.0', { document: { title: 'second' } })]
    rig.handler.data.set('a', async () => ({ ...fullResult(entries), problems: Array.from({ length: 150 }, () => problem) }) as FetchResult)
    rig.start()
    await rig.synced('a')
    const { sync } = await rig.record('a')
    expect(sync.problems).toHaveLength(100)
    expect(sync).toMatchObject({ problemCount: 151, serverCount: 1, message: 'Sync completed successfully' })
    expect((await rig.store.versionsOf('a', 'x/one'))[0]?.text).not.toContain('second')
  })

  it('tells that the result could not be stored, and stores it at the next try', async () => {
    const rig = await rigOf([fileSource('a')])
    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0')])
    const finish = rig.store.finishSync
    rig.store.finishSync = async (lease, outcome) => {
      if (outcome.kind === 'changed') throw new ThvError('store_unavailable', 'the disk is full')
      return finish(lease, outcome)
    }
    rig.start()
    await eventually(rig.clock, async () => (await rig.record('a')).sync.phase === 'failed')
    expect((await rig.record('a')).sync).toMatchObject({ message: 'Storage failed: the disk is full', attemptCount: 1 })
    rig.store.finishSync = finish
    await rig.synced('a')
    expect(await rig.names('a')).toEqual(['x/one'])
  })

  it('syncs when asked, though nothing is due', async () => {
    const rig = await rigOf([fileSource('a', { intervalMs: 60 * MINUTE })])
    rig.start()
    await rig.synced('a')
    rig.handler.data.set('a', [fetchedEntry('x/one', '1.0.0')])
    await rig.store.requestSync('a')
    await eventually(rig.clock, async () => (await rig.names('a')).length === 1)
    expect(rig.handler.calls).toHaveLength(2)
  })

  it('keeps nothing of an attempt that has ended', async () => {
    const rig = await rigOf([fileSource('a')])
    const signals: AbortSignal[] = []
    rig.handler.data.set('a', async ({ signal }) => {
      signals.push(signal)
      return fullResult([fetchedEntry('x/one', '1.0.0')])
    })
    rig.start()
    await rig.clock.advance(2 * MINUTE)
    expect(signals.length).toBeGreaterThan(1)
    // A signal that is listened to lives as long as the loop, with the whole result of the fetch.
    expect(signals.flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([])
  })

  it('stops fetches when it is closed', async () => {
    const rig = await rigOf([fileSource('a')])
    let aborted = false
    rig.handler.data.set('a', ({ signal }) => {
      signal.addEventListener('abort', () => (aborted = true))
      return new Promise(() => undefined)
    })
    const loop = rig.start()
    await eventually(rig.clock, () => rig.handler.running.now === 1)
    await loop[Symbol.asyncDispose]()
    expect(aborted).toBe(true)
    expect(rig.outcomes).toEqual([])
    expect(rig.clock.pending).toBe(0)
    // The next one need not wait for the lease to run out.
    await rig.clock.advance(10)
    expect(await rig.store.claimDue({ owner: 'another', leaseMs: 1000, limit: 10 })).toHaveLength(1)
  })
})

async function rigOf(sources: readonly SourceConfig[], sync: Partial<SyncConfig> = {}) {
  const clock = new TestClock()
  const store: RegistryStore = await openSqliteStore({ clock })
  open.push(store)
  const handler = createFakeHandler()
  const { log, lines } = recordingLog()
  const outcomes: SyncOutcome[] = []
  const finish = store.finishSync.bind(store)
  store.finishSync = async (lease, outcome) => {
    const written = await finish(lease, outcome)
    outcomes.push(outcome)
    return written
  }
  await store.reconcileConfig({ sources, registries: [] })
  const record = async (name: string): Promise<SourceRecord> => {
    const found = (await store.sources()).find((source) => source.config.name === name)
    if (!found) throw new Error(`no source ${name}`)
    return found
  }
  return {
    clock,
    store,
    handler,
    outcomes,
    lines,
    record,
    start(limits: { timeoutMs?: number } = {}) {
      const config = { ...testConfig({ sources: [], registries: [] }).sync, ...sync }
      const loop = startSyncLoop({
        store,
        handlers: { file: handler },
        clock,
        log,
        config: () => config,
        owner: 'me',
        limits: () => ({ ...DEFAULT_FETCH_LIMITS, ...limits }),
        tempDir: '/tmp',
        random: () => 0,
        pause: async () => undefined,
      })
      open.push(loop)
      return loop
    },
    synced: (name: string) => eventually(clock, async () => (await record(name)).sync.phase === 'complete', 10 * MINUTE),
    async names(source: string): Promise<string[]> {
      const rows: StoredEntry[] = []
      for await (const batch of store.entriesAfter(0, new AbortController().signal)) rows.push(...batch)
      const own = rows.filter((row) => row.source === source)
      return own.map((row) => (row.status === 'deleted' ? `${row.name} (deleted)` : row.name)).sort()
    },
  }
}
