import { hash } from 'node:crypto'
import type { ExportedEntry } from '@thv/catalog/discover/entry/exported-entry'
import type { EntryChanges } from '@thv/catalog/discover/entry-outputs'
import { entryDigest } from './entry-digest.ts'

const BUCKETS = 64
const EMPTY = ''

/** The digests of all entries of an export, for one digest of them all that follows a change in the time of a change, and not of all. */
export class EntrySet {
  readonly #buckets = Array.from({ length: BUCKETS }, () => new Set<string>())
  readonly #digests: string[] = Array.from({ length: BUCKETS }, () => EMPTY)
  readonly #stale = new Set<number>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(entry: ExportedEntry): void {
    const digest = entryDigest(entry)
    const bucket = this.#stir(digest)
    if (bucket.has(digest)) return
    bucket.add(digest)
    this.#size++
  }

  delete(entry: ExportedEntry): void {
    const digest = entryDigest(entry)
    if (this.#stir(digest).delete(digest)) this.#size--
  }

  apply({ entries, gone, replaced }: EntryChanges): void {
    for (const entry of [...gone, ...replaced]) this.delete(entry)
    for (const entry of entries) this.add(entry)
  }

  /** Another for every other set; the order in which they came does not matter. */
  digest(): string {
    for (const index of this.#stale) {
      const bucket = this.#buckets[index] as Set<string>
      this.#digests[index] = bucket.size === 0 ? EMPTY : hash('sha256', [...bucket].sort().join(), 'base64url')
    }
    this.#stale.clear()
    return hash('sha256', this.#digests.join(), 'base64url')
  }

  #stir(digest: string): Set<string> {
    const index = digest.charCodeAt(0) % BUCKETS
    this.#stale.add(index)
    return this.#buckets[index] as Set<string>
  }
}
