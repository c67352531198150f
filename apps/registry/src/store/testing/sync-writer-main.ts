import { systemClock } from '@thv/kernel/clock'
import { changed, entry, file, sync } from '../contract/contract-tools.ts'
import { openSqliteStore } from '../sqlite/sqlite-store.ts'

/** Run by a test that kills it: writes all rows again and again, each time with the next number, and tells every number that is written. */
const [, , path = '', rows = '1000', first = '1'] = process.argv
const store = await openSqliteStore({ path, clock: systemClock })
await store.putSource(file('a'))
for (let round = Number(first); ; round++) {
  const upserts = Array.from({ length: Number(rows) }, (_, n) =>
    entry('io.x/a', `${n}`, { text: `{"round":${round},"fill":"${'x'.repeat(500)}"}` }),
  )
  await sync(store, 'a', changed(upserts, { hash: `${round}` }))
  process.stdout.write(`${round}\n`)
}
