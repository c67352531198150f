import { jsonEqual } from '@thv/kernel/json'
import {
  byEntryName,
  type Contribution,
  type DroppedEntry,
  filtered,
  type MergeRules,
  mergeDocuments,
  newest,
} from '../merge/merge-documents.ts'
import { type DocumentEntry, type RegistryDocument, wireName } from '../merge/registry-document.ts'
import { documentBytes, type EntryBytes } from '../merge/write-document.ts'
import { bytesOf, isTooLarge, MAX_SHARD_BYTES, partText, placeOf, type Sharding, spreadDocument } from './shards.ts'

export type ShardedOutcome =
  | { readonly kind: 'conflict'; readonly names: readonly string[] }
  | { readonly kind: 'merged'; readonly servers: number; readonly dropped: readonly DroppedEntry[]; readonly sharding: Sharding }

/** The last merge, as long as another one can be made from it. */
interface Standing {
  readonly rules: MergeRules
  readonly documents: Map<string, RegistryDocument>
  /** Contribution of each name on the wire: no two have the same. */
  readonly owners: Map<string, string>
  readonly isSharded: boolean
  readonly parts: RegistryDocument[]
  readonly texts: (string | undefined)[]
  bytes: EntryBytes
  servers: number
}

/**
 * Merges contributions and spreads them over files, again and again. The outcome is always that of `mergeDocuments` and `shardDocument`; where
 * no name is in conflict, only files with a changed entry are written again, the others are the same strings as before.
 */
export class ShardedMerge {
  #standing: Standing | undefined

  merge(contributions: readonly Contribution[], rules: MergeRules): ShardedOutcome {
    const standing = this.#standing
    this.#standing = undefined
    const next = standing !== undefined && jsonEqual(standing.rules, rules) ? advance(standing, contributions) : undefined
    if (next === undefined) return this.#mergeAll(contributions, rules)
    this.#standing = next
    return outcomeOf(next)
  }

  #mergeAll(contributions: readonly Contribution[], rules: MergeRules): ShardedOutcome {
    const merge = mergeDocuments(contributions, rules)
    if (merge.kind === 'conflict') return merge
    const { document, dropped, conflicts, owners } = merge
    const { sharding, parts, bytes } = spreadDocument(document)
    const outcome = { kind: 'merged', servers: document.entries.length, dropped, sharding } as const
    if (conflicts > 0 || !sharding.ok) return outcome
    this.#standing = {
      rules,
      documents: new Map(contributions.map(({ name, document: own }) => [name, own])),
      owners,
      isSharded: parts.length > 1,
      parts,
      texts: [...sharding.texts],
      bytes,
      servers: document.entries.length,
    }
    return outcome
  }
}

function outcomeOf({ servers, texts }: Standing): ShardedOutcome {
  return { kind: 'merged', servers, dropped: [], sharding: { ok: true, texts: [...texts] } }
}

/** Undefined: all must be merged again, and `standing` must not be used any more. */
function advance(standing: Standing, contributions: readonly Contribution[]): Standing | undefined {
  const { rules, documents, owners } = standing
  const changed = changedDocuments(documents, contributions)
  if (changed.some(({ before, after }) => (before?.groups.length ?? 0) + (after?.groups.length ?? 0) > 0)) return undefined
  for (const { before } of changed) for (const entry of before?.entries ?? []) owners.delete(wireName(entry.name))
  for (const { name, after } of changed)
    for (const entry of after?.entries ?? []) {
      const wire = wireName(entry.name)
      if ((owners.get(wire) ?? name) !== name) return undefined
      owners.set(wire, name)
    }
  for (const { name, after } of changed) {
    if (after === undefined) documents.delete(name)
    else documents.set(name, after)
  }
  const difference = differenceOf(changed, rules)
  const touched = applyDifference(standing, difference)
  takeTime(standing, newest(contributions), touched)
  return rewrite(standing, touched)
}

interface Changed {
  readonly name: string
  readonly before: RegistryDocument | undefined
  readonly after: RegistryDocument | undefined
}

/** By identity: a document that was read again is another. */
function changedDocuments(documents: ReadonlyMap<string, RegistryDocument>, contributions: readonly Contribution[]): Changed[] {
  const changed: Changed[] = []
  let known = 0
  for (const { name, document: after } of contributions) {
    const before = documents.get(name)
    if (before !== undefined) known += 1
    if (before !== after) changed.push({ name, before, after })
  }
  if (known === documents.size) return changed
  const now = new Set(contributions.map(({ name }) => name))
  const gone = [...documents].flatMap(([name, before]): Changed[] => (now.has(name) ? [] : [{ name, before, after: undefined }]))
  return [...gone, ...changed]
}

interface Difference {
  /** By name and version. */
  readonly removed: ReadonlyMap<string, DocumentEntry>
  readonly added: readonly DocumentEntry[]
}

/** Entries that are the same before and after are in neither. */
function differenceOf(changed: readonly Changed[], { filter }: MergeRules): Difference {
  const removed = new Map<string, DocumentEntry>()
  for (const { before } of changed) for (const entry of filtered([...(before?.entries ?? [])], filter)) removed.set(idOf(entry), entry)
  const added: DocumentEntry[] = []
  for (const { after } of changed)
    for (const entry of filtered([...(after?.entries ?? [])], filter)) {
      const old = removed.get(idOf(entry))
      if (old?.text === entry.text && old.field === entry.field) removed.delete(idOf(entry))
      else added.push(entry)
    }
  return { removed, added }
}

/** Gives the parts that are others now. */
function applyDifference(standing: Standing, { removed, added }: Difference): Set<number> {
  const { isSharded, parts: all, rules } = standing
  const partOf = ({ name }: DocumentEntry): number => (isSharded ? placeOf(name) : 0)
  const names = new Set(Array.from(removed.values(), ({ name }) => name))
  const touched = new Set([...removed.values(), ...added].map(partOf))
  for (const index of touched) {
    const part = all[index]
    if (part === undefined) continue
    const kept = part.entries.filter((entry) => !names.has(entry.name) || !removed.has(idOf(entry)))
    all[index] = { ...part, entries: [...kept, ...added.filter((entry) => partOf(entry) === index)].sort(byEntryName) }
  }
  standing.bytes = counted(standing.bytes, { removed, added }, rules.format)
  standing.servers += added.length - removed.size
  return touched
}

function counted(before: EntryBytes, { removed, added }: Difference, format: RegistryDocument['format']): EntryBytes {
  const less = bytesOf({ format, entries: [...removed.values()] })
  const more = bytesOf({ format, entries: added })
  const sum = (which: keyof EntryBytes) => ({
    count: before[which].count - less[which].count + more[which].count,
    bytes: before[which].bytes - less[which].bytes + more[which].bytes,
  })
  return { servers: sum('servers'), remoteServers: sum('remoteServers') }
}

/** The first file carries it. */
function takeTime({ parts: all }: Standing, time: string, touched: Set<number>): void {
  const [first] = all
  if (first === undefined || first.lastUpdated === time) return
  all[0] = { ...first, lastUpdated: time }
  touched.add(0)
}

function rewrite(standing: Standing, touched: ReadonlySet<number>): Standing | undefined {
  const { parts: all, texts, isSharded, bytes } = standing
  const [first] = all
  if (first === undefined) return undefined
  const groups = all.flatMap((part) => part.groups)
  if (documentBytes({ ...first, groups }, bytes) > MAX_SHARD_BYTES !== isSharded) return undefined
  for (const index of touched) {
    const part = all[index]
    const text = part && partText(part, index)
    if (isTooLarge(text)) return undefined
    texts[index] = text
  }
  return standing
}

function idOf({ name, version }: DocumentEntry): string {
  return `${name}\n${version ?? ''}`
}
