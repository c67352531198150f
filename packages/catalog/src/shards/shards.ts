import { hash } from 'node:crypto'
import type { DocumentEntry, DocumentGroup, RegistryDocument } from '../merge/registry-document.ts'
import { documentBytes, type EntryBytes, entryBytes, writeDocument } from '../merge/write-document.ts'

/** A ConfigMap holds at most 1 MiB; this leaves room for its metadata. */
export const MAX_SHARD_BYTES = 900 * 1024
export const MAX_SHARDS = 16

/** Registry data spread over ConfigMaps. `texts[0]` is the first map's; undefined: that map is not needed. */
export type Sharding =
  | { readonly ok: true; readonly texts: readonly (string | undefined)[] }
  | { readonly ok: false; readonly bytes: number }

/**
 * One file up to 900 KiB, the plain form. Above that up to 16: an entry's place depends on its name alone, so a change touches one
 * file, except when the number of files changes between one and several.
 */
export function shardDocument(document: RegistryDocument): Sharding {
  return spreadDocument(document).sharding
}

/** A sharding with what it was made from. */
export interface Spread {
  readonly sharding: Sharding
  /** One document for each file; a single one when all fits into it. */
  readonly parts: RegistryDocument[]
  readonly bytes: EntryBytes
}

export function spreadDocument(document: RegistryDocument): Spread {
  const bytes = bytesOf(document)
  const size = documentBytes(document, bytes)
  if (size <= MAX_SHARD_BYTES) {
    const texts = [writeDocument(document), ...Array.from({ length: MAX_SHARDS - 1 }, () => undefined)]
    return { sharding: { ok: true, texts }, parts: [document], bytes }
  }
  const all = parts(document)
  const texts = all.map(partText)
  return { sharding: texts.some(isTooLarge) ? { ok: false, bytes: size } : { ok: true, texts }, parts: all, bytes }
}

export function bytesOf({ format, entries }: Pick<RegistryDocument, 'format' | 'entries'>): EntryBytes {
  const all = { servers: { count: 0, bytes: 0 }, remoteServers: { count: 0, bytes: 0 } }
  for (const entry of entries) {
    const sum = format === 'toolhive' && entry.field === 'remote_servers' ? all.remoteServers : all.servers
    sum.count += 1
    sum.bytes += entryBytes(entry, format)
  }
  return all
}

/** Undefined: that file is not needed. */
export function partText(part: RegistryDocument, index: number): string | undefined {
  return index > 0 && part.entries.length + part.groups.length === 0 ? undefined : writeDocument(part)
}

export function isTooLarge(text: string | undefined): boolean {
  return text !== undefined && Buffer.byteLength(text) > MAX_SHARD_BYTES
}

/** Only the first carries the time: a new one must not touch the others. */
function parts({ format, entries, groups, lastUpdated }: RegistryDocument) {
  const all = Array.from({ length: MAX_SHARDS }, (_, index) => ({
    format,
    entries: [] as DocumentEntry[],
    groups: [] as DocumentGroup[],
    ...(index === 0 && lastUpdated !== undefined ? { lastUpdated } : {}),
  }))
  for (const entry of entries) all[placeOf(entry.name)]?.entries.push(entry)
  for (const group of groups) all[placeOf(group.name)]?.groups.push(group)
  return all
}

/** Which of the 16 files holds the entries of a name. */
export function placeOf(name: string): number {
  return Number.parseInt(hash('sha256', name).slice(0, 2), 16) % MAX_SHARDS
}

/** `NAME`, `NAME-1` … `NAME-15`. */
export function shardName(name: string, index: number): string {
  return index === 0 ? name : `${name}-${index}`
}

/** The file of a shard in the folder that the registry server reads. */
export function shardFile(index: number): string {
  return index === 0 ? 'registry.json' : `registry-${index}.json`
}

/**
 * The order in which maps change so that no entry is missing meanwhile: maps that gain entries before those that lose them. Entries move
 * only when one file becomes several or the reverse.
 */
export function writeOrder(texts: readonly (string | undefined)[]): readonly number[] {
  const several = texts.slice(1).some((text) => text !== undefined)
  const others = Array.from({ length: MAX_SHARDS - 1 }, (_, index) => index + 1)
  return several ? [...others, 0] : [0, ...others]
}
