import { setImmediate } from 'node:timers/promises'
import type { EntrySummary } from './engine.ts'
import type { EntryPage, EntryPlace } from './entry-page.ts'

/** Page by page, with a turn of the event loop between. */
export async function allEntries(page: (after: EntryPlace | undefined) => Promise<EntryPage>): Promise<readonly EntrySummary[]> {
  const all: EntrySummary[] = []
  let after: EntryPlace | undefined
  do {
    const { entries, next } = await page(after)
    for (const entry of entries) all.push(entry)
    after = next
    await setImmediate()
  } while (after !== undefined)
  return all
}
