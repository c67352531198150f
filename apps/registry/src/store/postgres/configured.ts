import { type SourceConfig, sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import { ThvError } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { RegistryRecord, RegistrySpec, RegistryStore, SourceRecord } from '../registry-store.ts'
import type { Database, Sql } from './database.ts'
import { lockRevision, type Stamp, takeRevision } from './revision.ts'
import { claimsText, isManaged, type RegistryRow, registryRecord, SOURCE_COLUMNS, type SourceRow, sourceRecord } from './rows.ts'
import { deleteSourceRow, insertSource, updateSource } from './source-rows.ts'

export type ConfiguredCalls = Pick<
  RegistryStore,
  'sources' | 'registries' | 'reconcileConfig' | 'putSource' | 'deleteSource' | 'putRegistry' | 'deleteRegistry'
>

/** Sources and registries are few: each write reads them all, decides, and writes what differs. */
export function configuredCalls(database: Database): ConfiguredCalls {
  const change = <T>(work: (session: Session) => Promise<T>, goes: (source: SourceRecord) => boolean = () => false): Promise<T> =>
    database.transaction(async (sql) => {
      await lockSources(sql, (await readSources(sql)).filter(goes))
      const stamp = await lockRevision(sql)
      const session: Session = { sql, stamp, sources: await readSources(sql), registries: await readRegistries(sql), changed: false }
      const result = await work(session)
      if (session.changed) await takeRevision(sql, stamp, 'structure')
      return result
    })
  return {
    sources: () => readSources(database.query),
    registries: () => readRegistries(database.query),
    reconcileConfig: (config) =>
      change(
        (session) => reconcile(session, config),
        (source) => !staysConfigured(source, config.sources),
      ),
    putSource: (source) => change((session) => putSource(session, source)),
    deleteSource: (name) =>
      change(
        (session) => deleteSource(session, name),
        ({ config }) => config.name === name,
      ),
    putRegistry: (spec) => change((session) => putRegistry(session, spec)),
    deleteRegistry: (name) => change((session) => deleteRegistry(session, name)),
  }
}

/** Somebody may be writing entries of what goes: that is waited for before everybody else has to wait for us. */
async function lockSources(sql: Sql, sources: readonly SourceRecord[]): Promise<void> {
  if (sources.length > 0) await sql('SELECT FROM source WHERE id = ANY ($1) ORDER BY id FOR UPDATE', [sources.map(({ id }) => id)])
}

interface Session {
  readonly sql: Sql
  readonly stamp: Stamp
  readonly sources: readonly SourceRecord[]
  readonly registries: readonly RegistryRecord[]
  changed: boolean
}

async function readSources(sql: Sql): Promise<SourceRecord[]> {
  return (await sql<SourceRow>(`SELECT ${SOURCE_COLUMNS} FROM source ORDER BY name`)).map(sourceRecord)
}

async function readRegistries(sql: Sql): Promise<RegistryRecord[]> {
  const rows = await sql<RegistryRow>(
    `SELECT name, creation, position, sources, claims, created_at, updated_at FROM registry
     ORDER BY creation = 'API', position, id`,
  )
  return rows.map(registryRecord)
}

async function putSource(session: Session, source: SourceConfig): Promise<{ created: boolean }> {
  const { sql, stamp, sources } = session
  const old = sources.find(({ config }) => config.name === source.name)
  if (old?.creation === 'CONFIG') throw madeByConfiguration('source', source.name)
  if (!old) {
    if (isManaged(source)) demandOneManaged([source, ...sources.map(({ config }) => config)])
    await insertSource(sql, { source, creation: 'API', stamp })
    session.changed = true
    return { created: true }
  }
  const [before, after] = [sourceTypeOf(old.config), sourceTypeOf(source)]
  if (before !== after) throw new ThvError('bad_request', `source ${source.name} is of type ${before} and cannot become ${after}`)
  if (await updateSource(sql, { old, source, stamp })) session.changed = true
  return { created: false }
}

async function deleteSource(session: Session, name: string): Promise<void> {
  const { sql, sources, registries } = session
  const old = sources.find(({ config }) => config.name === name)
  if (!old) throw new ThvError('not_found', `there is no source ${name}`)
  if (old.creation === 'CONFIG') throw madeByConfiguration('source', name)
  const user = registries.find(({ spec }) => spec.sources.includes(name))
  if (user) throw new ThvError('conflict', `source ${name} is used by registry ${user.spec.name}`)
  await deleteSourceRow(sql, old.id)
  session.changed = true
}

async function putRegistry(session: Session, spec: RegistrySpec): Promise<{ created: boolean }> {
  const old = session.registries.find((one) => one.spec.name === spec.name)
  if (old?.creation === 'CONFIG') throw madeByConfiguration('registry', spec.name)
  demandSources(spec, new Set(session.sources.map(({ config }) => config.name)))
  await writeRegistry(session, { spec, creation: 'API', position: 0, old })
  return { created: old === undefined }
}

async function deleteRegistry(session: Session, name: string): Promise<void> {
  const old = session.registries.find(({ spec }) => spec.name === name)
  if (!old) throw new ThvError('not_found', `there is no registry ${name}`)
  if (old.creation === 'CONFIG') throw madeByConfiguration('registry', name)
  await session.sql('DELETE FROM registry WHERE name = $1', [name])
  session.changed = true
}

type Config = Parameters<RegistryStore['reconcileConfig']>[0]

async function reconcile(session: Session, config: Config): Promise<void> {
  demandPossible(session, config)
  await reconcileSources(session, config.sources)
  const kept = new Set(config.registries.map(({ name }) => name))
  const registries = await readRegistries(session.sql)
  for (const { spec, creation } of registries) {
    if (creation === 'API' || kept.has(spec.name)) continue
    await session.sql('DELETE FROM registry WHERE name = $1', [spec.name])
    session.changed = true
  }
  const stay = registries.filter(({ creation, spec }) => creation === 'CONFIG' && kept.has(spec.name)).map(({ spec }) => spec.name)
  const wanted = config.registries.map(({ name }) => name)
  // Then what all registries together serve may be another.
  const moved = !jsonEqual(
    stay,
    wanted.filter((name) => stay.includes(name)),
  )
  for (const [position, spec] of config.registries.entries()) {
    const old = registries.find((one) => one.spec.name === spec.name)
    await writeRegistry(session, { spec, creation: 'CONFIG', position, old, moved })
  }
  await session.sql(
    `UPDATE registry SET position = placed.nth - 1 FROM unnest($1::text[]) WITH ORDINALITY AS placed (name, nth)
     WHERE registry.name = placed.name AND registry.position <> placed.nth - 1`,
    [wanted],
  )
}

async function reconcileSources(session: Session, wanted: readonly SourceConfig[]): Promise<void> {
  const { sql, stamp, sources } = session
  const names = new Set(wanted.map(({ name }) => name))
  for (const old of sources) {
    if (staysConfigured(old, wanted)) continue
    await deleteSourceRow(sql, old.id)
    if (!names.has(old.config.name)) await leaveRegistries(sql, old.config.name, stamp)
    session.changed = true
  }
  for (const source of wanted) {
    const old = sources.find(({ config }) => config.name === source.name)
    if (old && isManaged(source) === isManaged(old.config)) {
      if (await updateSource(sql, { old, source, stamp })) session.changed = true
    } else {
      await insertSource(sql, { source, creation: 'CONFIG', stamp })
      session.changed = true
    }
  }
}

function staysConfigured(old: SourceRecord, wanted: readonly SourceConfig[]): boolean {
  const source = wanted.find(({ name }) => name === old.config.name)
  return old.creation === 'API' || (source !== undefined && isManaged(source) === isManaged(old.config))
}

async function leaveRegistries(sql: Sql, source: string, { now }: Stamp): Promise<void> {
  await sql('UPDATE registry SET sources = array_remove(sources, $1), updated_at = $2 WHERE $1 = ANY (sources)', [source, now])
}

interface RegistryWrite {
  readonly spec: RegistrySpec
  readonly creation: 'CONFIG' | 'API'
  readonly position: number
  readonly old: RegistryRecord | undefined
  /** The configured ones have changed places. */
  readonly moved?: boolean
}

async function writeRegistry(session: Session, { spec, creation, position, old, moved = false }: RegistryWrite): Promise<void> {
  const { sql, stamp } = session
  if (old !== undefined && jsonEqual(old.spec, spec) && !moved) return
  session.changed = true
  await sql(
    `INSERT INTO registry (name, creation, position, sources, claims, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
     ON CONFLICT (name) DO UPDATE SET position = excluded.position, sources = excluded.sources, claims = excluded.claims,
       updated_at = excluded.updated_at`,
    [spec.name, creation, position, spec.sources, claimsText(spec.claims), stamp.now],
  )
}

function demandPossible({ sources, registries }: Session, config: Config): void {
  const made = sources.filter(({ creation }) => creation === 'API').map((source) => source.config)
  const madeNames = new Set(made.map(({ name }) => name))
  for (const { name } of config.sources) {
    if (madeNames.has(name)) throw new ThvError('conflict', `source ${name} is configured, but was made through the API already`)
  }
  demandOneManaged([...config.sources, ...made])
  const madeRegistries = new Set(registries.filter(({ creation }) => creation === 'API').map(({ spec }) => spec.name))
  const known = new Set([...madeNames, ...config.sources.map(({ name }) => name)])
  for (const spec of config.registries) {
    if (madeRegistries.has(spec.name))
      throw new ThvError('conflict', `registry ${spec.name} is configured, but was made through the API already`)
    demandSources(spec, known)
  }
}

function demandOneManaged(configs: readonly SourceConfig[]): void {
  const managed = configs.filter(isManaged).map(({ name }) => name)
  if (managed.length > 1) throw new ThvError('conflict', `there can be only one managed source, not ${managed.join(' and ')}`)
}

function demandSources({ name, sources }: RegistrySpec, known: ReadonlySet<string>): void {
  const unknown = sources.find((source) => !known.has(source))
  if (unknown !== undefined) throw new ThvError('bad_request', `registry ${name} names source ${unknown}, which is not there`)
  const twice = sources.find((source, index) => sources.indexOf(source) !== index)
  if (twice !== undefined) throw new ThvError('bad_request', `registry ${name} names source ${twice} twice`)
}

function madeByConfiguration(kind: 'source' | 'registry', name: string): ThvError {
  return new ThvError('forbidden', `${kind} ${name} comes from the configuration file and can only be changed there`)
}
