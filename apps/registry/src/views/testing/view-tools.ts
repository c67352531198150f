import { responseMeta, wrapDocumentText } from '@thv/catalog/official-envelope'
import type { ListQuery } from '@thv/catalog/snapshot/list-query'
import { pageTail } from '@thv/catalog/snapshot/page'
import { openSnapshot, type Snapshot } from '@thv/catalog/snapshot/snapshot'
import type { SnapshotData } from '@thv/catalog/snapshot/snapshot-data'
import { buildSnapshot } from '@thv/catalog/snapshot/testing/build-snapshot'
import { compareVersions } from '@thv/catalog/version-order'
import { runAtOnce } from '@thv/kernel/steps'
import type { StoredEntry } from '../../store/registry-store.ts'
import type { Catalog } from '../catalog.ts'
import { createViewBuilder, type ViewSpec } from '../view-builder.ts'

export const EPOCH = Date.UTC(2026, 0, 1)

/** Revision `r` is written at second `r`. */
export function stored(source: string, name: string, more: Partial<StoredEntry> & { revision: number }): StoredEntry {
  const version = more.version ?? '1.0.0'
  const time = new Date(EPOCH + more.revision * 1000).toISOString()
  return {
    source,
    name,
    version,
    text: JSON.stringify({ name, description: `${source} has ${name}`, version, by: more.revision }),
    status: 'active',
    publishedAt: time,
    updatedAt: time,
    statusChangedAt: time,
    ...more,
  }
}

export function specOf(...sources: readonly string[]): ViewSpec {
  return { sources: sources.map((name) => ({ name, claims: undefined })), visible: undefined, floorMs: 0 }
}

export function fill(catalog: Catalog, entries: readonly StoredEntry[]): void {
  for (const entry of entries) catalog.add(entry)
  runAtOnce(catalog.settle())
}

export function openView(catalog: Catalog, spec: ViewSpec, builder = createViewBuilder()): Snapshot {
  return openSnapshot(runAtOnce(builder.build(catalog, spec)).snapshot, compareVersions)
}

/** The view of one source, built the plain way. */
export function plainSnapshot(entries: readonly StoredEntry[]): Snapshot {
  const data: SnapshotData = buildSnapshot(
    entries.map((entry) => ({ ...entry, document: JSON.parse(entry.text) })),
    {
      compareVersions,
      serialise: (entry, { isLatest }) =>
        wrapDocumentText(JSON.stringify(entry.document), responseMeta(entry, isLatest, { source: entry.source })),
    },
  )
  return openSnapshot(data, compareVersions)
}

export function listText(snapshot: Snapshot, query: ListQuery = {}): string {
  const page = snapshot.list({ limit: 1000, ...query })
  if (!('slices' in page)) throw new Error(page.message)
  return `${Buffer.concat(page.slices)}${pageTail(page)}`
}

export interface ListedServer {
  readonly name: string
  readonly version: string
  readonly by: number
  readonly status: string
  readonly updatedAt: string
  readonly isLatest: boolean
}

export function listed(snapshot: Snapshot, query: ListQuery = {}): ListedServer[] {
  const page = snapshot.list({ limit: 1000, ...query })
  if (!('slices' in page)) throw new Error(page.message)
  return JSON.parse(`[${Buffer.concat(page.slices)}]`).map(
    ({ server, _meta }: { server: ListedServer; _meta: { [key: string]: ListedServer } }) => {
      const { status, updatedAt, isLatest } = _meta['io.modelcontextprotocol.registry/official'] ?? server
      return { name: server.name, version: server.version, by: server.by, status, updatedAt, isLatest }
    },
  )
}
