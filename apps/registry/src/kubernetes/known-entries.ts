import { type KnownEntry, type KnownServers, knownServers } from '@thv/catalog/discover/entry/known-servers'
import { officialKey } from '@thv/catalog/official-envelope'
import { documentTags } from '@thv/catalog/server-extensions'
import type { RegistryStore, SourceRecord } from '../store/registry-store.ts'
import type { Catalog } from '../views/catalog.ts'
import { documentOf, documentText, metaOf, type Row } from '../views/catalog-row.ts'
import type { Group } from '../views/version-group.ts'

export interface KnownEntriesOptions {
  readonly store: Pick<RegistryStore, 'sources' | 'registries'>
  readonly catalog: Catalog
  readonly pause: () => Promise<void>
}

const PER_TURN = 500

/**
 * Servers of the sources that every registry with the kubernetes source lists too. Only those: a copy is shown wherever the
 * kubernetes source is, and must not carry an entry into a registry that does not list its source.
 */
export function createKnownEntries({ store, catalog, pause }: KnownEntriesOptions): (source: string) => Promise<KnownServers> {
  const kept = new Map<string, { readonly identity: string; readonly servers: KnownServers }>()

  return async (source) => {
    const sources = await lookUpSources(store, source)
    const identity = JSON.stringify(sources.map(({ id, config }) => [id, config.claims, catalog.newest(config.name).revision]))
    const known = kept.get(source)
    if (known?.identity === identity) return known.servers
    const servers = knownServers(await collect(sources))
    kept.set(source, { identity, servers })
    return servers
  }

  async function collect(sources: readonly SourceRecord[]): Promise<readonly KnownEntry[][]> {
    const lists = sources.map((): KnownEntry[] => [])
    const order = new Map(sources.map(({ config }, i) => [config.name, i]))
    for (const [i, slot] of catalog.slots.entries()) {
      if (i % PER_TURN === 0) await pause()
      // The first source hides the name of all others.
      const [group] = slot.groups
        .filter((each) => order.has(each.source) && each.rows.some(({ deleted }) => !deleted))
        .sort((a, b) => (order.get(a.source) ?? 0) - (order.get(b.source) ?? 0))
      const at = group === undefined ? undefined : order.get(group.source)
      const record = at === undefined ? undefined : sources[at]
      if (group === undefined || at === undefined || record === undefined) continue
      lists[at]?.push(...entriesOf(slot.name, group, record))
    }
    return lists
  }
}

async function lookUpSources(store: KnownEntriesOptions['store'], source: string): Promise<readonly SourceRecord[]> {
  const listing = (await store.registries()).map(({ spec }) => spec.sources).filter((names) => names.includes(source))
  const shared = (listing[0] ?? []).filter((name) => listing.every((names) => names.includes(name)))
  const records = new Map((await store.sources()).map((record) => [record.config.name, record]))
  return shared.flatMap((name) => {
    const record = records.get(name)
    return record === undefined || record.config.kubernetes !== undefined ? [] : [record]
  })
}

/** None unless a version names an image. */
function entriesOf(name: string, group: Group, { config }: SourceRecord): readonly KnownEntry[] {
  const rows = group.rows.filter(({ deleted }) => !deleted)
  if (!rows.some((row) => documentText(row).includes('"oci"'))) return []
  const claims = group.claims ?? config.claims
  return rows.map((row) => entryOf(name, row, claims))
}

function entryOf(name: string, row: Row, claims: KnownEntry['claims']): KnownEntry {
  const official = metaOf(row)[officialKey] ?? {}
  const { statusMessage, publishedAt } = official
  return {
    name,
    version: row.version,
    text: documentText(row),
    tags: [...documentTags(documentOf(row))],
    status: row.status,
    ...(typeof statusMessage === 'string' ? { statusMessage } : {}),
    ...(typeof publishedAt === 'string' ? { publishedAt } : {}),
    ...(claims === undefined ? {} : { claims }),
  }
}
