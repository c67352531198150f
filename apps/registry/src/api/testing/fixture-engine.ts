import type { CatalogEntry, JsonObject } from '@thv/catalog/catalog-entry'
import { responseMeta, wrapDocumentText } from '@thv/catalog/official-envelope'
import { buildSearchIndex } from '@thv/catalog/search/build-search-index'
import { openSearchIndex } from '@thv/catalog/search/search-index'
import { buildSnapshot } from '@thv/catalog/snapshot/build-snapshot'
import { openSnapshot } from '@thv/catalog/snapshot/snapshot'
import { type Claims, type SourceConfig, sourceTypeOf } from '@thv/catalog/sources/source-config'
import { compareVersions } from '@thv/catalog/version-order'
import { ThvError } from '@thv/kernel/errors'
import type { EngineAdmin, EngineStatus, RegistryEngine, ServedRegistry, ServedView } from '../../engine/engine.ts'
import type { NewEntry, RegistryRecord, RegistrySpec, SourceRecord, StatusChange, StoredEntry } from '../../store/registry-store.ts'

export interface FixtureOptions {
  readonly sources: readonly SourceConfig[]
  readonly registries: readonly RegistrySpec[]
  readonly entries?: readonly FixtureEntry[]
}

export type FixtureEntry = Pick<StoredEntry, 'source' | 'name' | 'version'> & Partial<StoredEntry>

export interface FixtureEngine extends RegistryEngine {
  status: EngineStatus
  /** Calls of the store reject with this. */
  failure: ThvError | undefined
  /** Views are there; false as after a start. */
  built: boolean
  readonly syncsAsked: string[]
}

const EPOCH = Date.UTC(2026, 0, 1)

/** An engine without store, sync and worker: everything in maps, everything built anew at each change, a clock that ticks per write. */
export function createFixtureEngine(options: FixtureOptions): FixtureEngine {
  let ticks = 0
  const now = () => new Date(EPOCH + ++ticks * 1000).toISOString()
  const sources = new Map<string, SourceRecord>()
  const registries = new Map<string, RegistryRecord>()
  const rows = new Map<string, StoredEntry>()
  const syncsAsked: string[] = []
  let views = new Map<string, ServedView>()
  let revision = 0

  const keyOf = ({ source, name, version }: { source: string; name: string; version: string }) => `${source} ${name} ${version}`
  const rowsOf = (source: string, name?: string) =>
    [...rows.values()].filter((row) => row.source === source && (!name || row.name === name))

  for (const config of options.sources) sources.set(config.name, sourceRecord(config, 'CONFIG'))
  for (const spec of options.registries) registries.set(spec.name, { spec, creation: 'CONFIG', createdAt: now(), updatedAt: now() })
  for (const entry of options.entries ?? []) {
    const time = now()
    const text = entry.text ?? JSON.stringify({ name: entry.name, description: `Server ${entry.name}.`, version: entry.version })
    const times = { publishedAt: time, updatedAt: time, statusChangedAt: time }
    rows.set(keyOf(entry), { text, status: 'active', ...times, revision: ++revision, ...entry })
  }

  function sourceRecord(config: SourceConfig, creation: SourceRecord['creation']): SourceRecord {
    const sync = { phase: 'complete', attemptCount: 0, serverCount: 0, message: '', problems: [], problemCount: 0 } as const
    return { id: sources.size + 1, config, creation, createdAt: now(), updatedAt: now(), sync }
  }

  function visibleRows(spec: RegistrySpec, sees: (claims: Claims | undefined) => boolean): StoredEntry[] {
    const winners = new Map<string, string>()
    const shown: StoredEntry[] = []
    for (const source of spec.sources) {
      for (const row of rowsOf(source)) {
        if (!sees(row.claims ?? sources.get(source)?.config.claims)) continue
        if ((winners.get(row.name) ?? source) !== source) continue
        winners.set(row.name, source)
        shown.push(row)
      }
    }
    return shown
  }

  function view(spec: RegistrySpec, visible?: readonly number[]): ServedView {
    const key = `${spec.name} ${visible?.join() ?? 'all'}`
    const known = views.get(key)
    if (known) return known
    const sets = claimSetsOf(spec)
    const sees = (claims: Claims | undefined) => visible === undefined || visible.some((i) => jsonOf(sets[i]) === jsonOf(claims))
    const texts = new Map<CatalogEntry, string>()
    const entries = visibleRows(spec, sees).map((row): CatalogEntry => {
      const entry = { ...row, document: JSON.parse(row.text) as JsonObject }
      texts.set(entry, row.text)
      return entry
    })
    const serialise = (entry: CatalogEntry, { isLatest }: { isLatest: boolean }) =>
      wrapDocumentText(texts.get(entry) ?? '{}', responseMeta(entry, isLatest))
    const built: ServedView = {
      revision,
      tag: Buffer.from(`${revision} ${key}`).toString('base64url'),
      searchTag: String(revision),
      snapshot: openSnapshot(buildSnapshot(entries, { compareVersions, serialise }), compareVersions),
      search: openSearchIndex(buildSearchIndex(entries, { compareVersions })),
    }
    views.set(key, built)
    return built
  }

  function claimSetsOf(spec: RegistrySpec): (Claims | undefined)[] {
    const sets = new Map<string, Claims | undefined>()
    for (const source of spec.sources) {
      for (const row of rowsOf(source)) {
        const claims = row.claims ?? sources.get(source)?.config.claims
        sets.set(jsonOf(claims), claims)
      }
    }
    return [...sets.values()]
  }

  function served(spec: RegistrySpec): ServedRegistry {
    return {
      name: spec.name,
      claims: spec.claims,
      get view() {
        return engine.built ? view(spec) : undefined
      },
      get claimSets() {
        return claimSetsOf(spec)
      },
      viewFor: async (visible) => view(spec, visible),
    }
  }

  /** A call of the store. */
  async function call<T>(fn: () => T): Promise<T> {
    if (engine.failure) throw engine.failure
    const result = fn()
    views = new Map()
    return structuredClone(result)
  }

  function managed(source: string): SourceRecord {
    const found = sources.get(source)
    if (!found) throw new ThvError('not_found', `there is no source ${source}`)
    if (!found.config.managed) throw new ThvError('bad_request', `the source ${source} is not managed`)
    return found
  }

  function write(entry: NewEntry, before: StoredEntry | undefined): StoredEntry {
    const time = now()
    const claims = entry.claims ?? rowsOf(entry.source, entry.name)[0]?.claims
    const { source, name, version, text } = entry
    const row: StoredEntry = {
      ...{ source, name, version, text, status: entry.status ?? before?.status ?? 'active' },
      ...(entry.statusMessage !== undefined && { statusMessage: entry.statusMessage }),
      publishedAt: before?.publishedAt ?? time,
      updatedAt: time,
      statusChangedAt: before?.statusChangedAt ?? time,
      ...(claims && { claims }),
      revision: ++revision,
    }
    rows.set(keyOf(row), row)
    return row
  }

  function record<T extends { creation: string }>(map: Map<string, T>, name: string, what: string): T {
    const found = map.get(name)
    if (!found) throw new ThvError('not_found', `there is no ${what} ${name}`)
    if (found.creation === 'CONFIG') throw new ThvError('forbidden', `cannot modify config-created ${what} via API`)
    return found
  }

  const admin: EngineAdmin = {
    sources: () =>
      call(() =>
        [...sources.values()].map((source) => {
          const serverCount = rowsOf(source.config.name).filter((row) => row.status !== 'deleted').length
          return { ...source, sync: { ...source.sync, serverCount } }
        }),
      ),
    registries: () => call(() => [...registries.values()]),
    putSource: (config) =>
      call(() => {
        const before = sources.get(config.name)
        if (before) record(sources, config.name, 'source')
        const others = [...sources.values()].filter(({ config: { name } }) => name !== config.name)
        if (config.managed && others.some((other) => other.config.managed))
          throw new ThvError('conflict', 'there is a managed source already')
        sources.set(config.name, before ? { ...before, config, updatedAt: now() } : sourceRecord(config, 'API'))
        revision++
        return { created: !before }
      }),
    deleteSource: (name) =>
      call(() => {
        record(sources, name, 'source')
        if ([...registries.values()].some(({ spec }) => spec.sources.includes(name)))
          throw new ThvError('conflict', 'a registry uses the source')
        sources.delete(name)
        for (const row of rowsOf(name)) rows.delete(keyOf(row))
      }),
    putRegistry: (spec) =>
      call(() => {
        const before = registries.get(spec.name)
        if (before) record(registries, spec.name, 'registry')
        const times = { createdAt: before?.createdAt ?? now(), updatedAt: now() }
        registries.set(spec.name, { spec, creation: 'API', ...times })
        revision++
        return { created: !before }
      }),
    deleteRegistry: (name) =>
      call(() => {
        record(registries, name, 'registry')
        registries.delete(name)
      }),
    requestSync: (source) => call(() => void syncsAsked.push(source)),
    entriesOf: (source) =>
      call(() =>
        rowsOf(source)
          .toSorted((a, b) => (a.name === b.name ? compareVersions(a.version, b.version) : a.name < b.name ? -1 : 1))
          .map(({ name, version, text, status, claims, publishedAt, updatedAt }) => {
            const { title, description } = JSON.parse(text) as { title?: string; description?: string }
            const shown = { ...(title && { title }), ...(description && { description }), ...(claims && { claims }) }
            return { name, version, status, createdAt: publishedAt, updatedAt, ...shown }
          }),
      ),
    publish: (entry) =>
      call(() => {
        managed(entry.source)
        const before = rows.get(keyOf(entry))
        if (before && before.status !== 'deleted')
          throw new ThvError('version_exists', `version already exists: ${entry.name}@${entry.version}`)
        return write(entry, undefined)
      }),
    replaceDocument: (entry) =>
      call(() => {
        managed(entry.source)
        const before = rows.get(keyOf(entry))
        if (!before) throw new ThvError('not_found', 'server version not found')
        return write(entry, before)
      }),
    setStatus: (change: StatusChange) =>
      call(() => {
        managed(change.source)
        const all = rowsOf(change.source, change.name)
        const found = all.filter((row) => change.version === undefined || row.version === change.version)
        if (found.length === 0) throw new ThvError('not_found', 'server version not found')
        const changed = found.filter((row) => change.version !== undefined || change.status !== 'deleted' || row.status !== 'deleted')
        const time = now()
        return changed.map((row) => {
          const { statusMessage: _, ...rest } = row
          const message = change.statusMessage === undefined ? {} : { statusMessage: change.statusMessage }
          const next = { ...rest, ...message, status: change.status, statusChangedAt: time, updatedAt: time, revision: ++revision }
          rows.set(keyOf(next), next)
          return next
        })
      }),
    versionsOf: (source, name) => call(() => rowsOf(source, name)),
    claimsOf: (source, name) => call(() => rowsOf(source, name)[0]?.claims),
    setClaims: (source, name, claims) =>
      call(() => {
        for (const row of rowsOf(source, name)) rows.set(keyOf(row), { ...row, ...(claims && { claims }), revision: ++revision })
      }),
  }

  const engine: FixtureEngine = {
    registry(name) {
      const found = registries.get(name)
      return found && served(found.spec)
    },
    get aggregated() {
      return served({ name: '', sources: [...new Set([...registries.values()].flatMap(({ spec }) => spec.sources))] })
    },
    status: { unbuilt: [], unsynced: [], failed: [], revision: 0, syncs: { succeeded: 0, unchanged: 0, failed: 0 } },
    failure: undefined,
    built: true,
    syncsAsked,
    admin,
    reload: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  for (const { config } of sources.values()) sourceTypeOf(config)
  return engine
}

function jsonOf(claims: Claims | undefined): string {
  return JSON.stringify(claims ?? null)
}
