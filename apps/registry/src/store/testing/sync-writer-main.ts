import { systemClock } from '@thv/kernel/clock'
import { openSqliteStore } from '../sqlite/sqlite-store.ts'

/** Run by a test that kills it: writes all rows again and again, each time with the next number, and tells every number that is written. */
const [, , path = '', rows = '1000', first = '1'] = process.argv
const store = await openSqliteStore({ path, clock: systemClock })
await store.putSource({ name: 'a', file: { path: '/data/a.json' }, intervalMs: 60_000 })
for (let round = Number(first); ; round++) {
  const upserts = Array.from({ length: Number(rows) }, (_, n) => ({
    name: 'io.x/a',
    version: `${n}`,
    text: `{"round":${round},"fill":"${'x'.repeat(500)}"}`,
    hash: `${round}`,
    status: 'active' as const,
  }))
  await store.requestSync('a')
  const [leased] = await store.claimDue({ owner: 'writer', leaseMs: 60_000, limit: 1 })
  if (!leased) throw new Error('nothing was due')
  const how = { hash: `${round}`, state: {}, message: '', problems: [], problemCount: 0, gone: [], nextInMs: 60_000 }
  await store.finishSync(leased.lease, { kind: 'changed', upserts, ...how })
  process.stdout.write(`${round}\n`)
}
