import { ShardedMerge } from '@thv/catalog/shards/sharded-merge'
import { jsonEqual } from '@thv/kernel/json'
import type { CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
import { aggregateEntry, type EntryAggregate, priorityOf } from './aggregate-entry.ts'
import type { ReadMap } from './contribution-reader.ts'

interface Kept {
  readonly merge: ShardedMerge
  readonly entry: CanonicalRegistryEntry
  readonly maps: readonly ReadMap[]
  readonly aggregate: EntryAggregate
  readonly bytes: number
}

/** Kept texts of all registries together. */
const MAX_BYTES = 64 * 1024 * 1024
/** Of one that holds no text: so that even those are not kept without end. */
const LEAST_BYTES = 1024

/** The last merge of each selector: nothing is merged again when nothing changed, and little when little changed. */
export class EntryMerges {
  readonly #maxBytes: number
  /** In the order of their last use. */
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  constructor({ maxBytes = MAX_BYTES }: { maxBytes?: number } = {}) {
    this.#maxBytes = maxBytes
  }

  /** `registry`: as `namespace/name`. */
  aggregate(registry: string, entry: CanonicalRegistryEntry, maps: readonly ReadMap[]): EntryAggregate {
    const id = `${registry} ${entry.name}`
    const known = this.#kept.get(id)
    const isKnown = known !== undefined && jsonEqual(known.entry, entry) && areSame(known.maps, maps)
    const merge = known?.merge ?? new ShardedMerge()
    const aggregate = isKnown ? known.aggregate : aggregateEntry(entry, maps, merge)
    this.#drop(id)
    this.#keep(id, { merge, entry, maps, aggregate, bytes: isKnown ? known.bytes : heldBytes(maps, aggregate) })
    return aggregate
  }

  forget(registry: string): void {
    for (const id of this.#kept.keys()) if (id.startsWith(`${registry} `)) this.#drop(id)
  }

  #keep(id: string, kept: Kept): void {
    this.#kept.set(id, kept)
    this.#bytes += kept.bytes
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes) return
      this.#drop(oldest)
    }
  }

  #drop(id: string): void {
    this.#bytes -= this.#kept.get(id)?.bytes ?? 0
    this.#kept.delete(id)
  }
}

/** Documents that were read stay in memory too, also where names are in conflict, a filter leaves nothing, or the result is refused. */
function heldBytes(maps: readonly ReadMap[], { texts = [] }: EntryAggregate): number {
  let bytes = LEAST_BYTES
  for (const { reading } of maps) {
    if (!reading.ok) continue
    for (const { text } of reading.document.entries) bytes += text.length
    for (const { text } of reading.document.groups) bytes += text.length
  }
  for (const text of texts) bytes += text?.length ?? 0
  return bytes
}

/** A reading is the same object as long as its ConfigMap has not changed. */
function areSame(before: readonly ReadMap[], now: readonly ReadMap[]): boolean {
  if (before.length !== now.length) return false
  return now.every(({ name, reading, annotations }, index) => {
    const old = before[index]
    return old?.name === name && old.reading === reading && priorityOf(old.annotations) === priorityOf(annotations)
  })
}
