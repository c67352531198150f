import { type SourceConfig, sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import { ThvError } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { Creation, RegistrySpec, SyncStatus } from '../registry-store.ts'
import type { Draft, RegistryRow } from './draft.ts'

export function reconcile(draft: Draft, config: { sources: readonly SourceConfig[]; registries: readonly RegistrySpec[] }): void {
  for (const { name } of config.sources) refuseTaken('source', name, draft.sources.get(name))
  for (const { name } of config.registries) refuseTaken('registry', name, draft.registries.get(name))
  const wanted = new Set(config.sources.map(({ name }) => name))
  for (const [name, row] of draft.sources) if (row.creation === 'CONFIG' && !wanted.has(name)) removeSource(draft, name)
  for (const source of config.sources) setSource(draft, source, 'CONFIG')
  refuseSecondManaged(draft)
  const registries = new Set(config.registries.map(({ name }) => name))
  for (const [name, row] of draft.registries) {
    if (row.creation !== 'CONFIG' || registries.has(name)) continue
    draft.registries.delete(name)
    draft.takeStructure()
  }
  const moved = changePlaces(draft, config.registries)
  for (const [position, spec] of config.registries.entries()) setRegistry(draft, spec, { creation: 'CONFIG', position, moved })
}

/** Whether those that stay have another order among themselves: then what all registries together serve may be another. */
function changePlaces(draft: Draft, wanted: readonly RegistrySpec[]): boolean {
  const places = wanted.flatMap(({ name }) => draft.registries.get(name)?.position ?? [])
  return places.some((place, i) => place < (places[i - 1] ?? 0))
}

export function putSource(draft: Draft, config: SourceConfig): { created: boolean } {
  const old = draft.sources.get(config.name)
  if (old) refuseConfigured('source', config.name, old.creation)
  if (old && sourceTypeOf(old.config) !== sourceTypeOf(config)) {
    throw new ThvError('bad_request', `the type of source ${config.name} cannot be changed; delete it first`)
  }
  setSource(draft, config, 'API')
  refuseSecondManaged(draft)
  return { created: old === undefined }
}

export function deleteSource(draft: Draft, name: string): void {
  const old = draft.sources.get(name)
  if (!old) throw new ThvError('not_found', `there is no source ${name}`)
  refuseConfigured('source', name, old.creation)
  const users = [...draft.registries.values()].filter(({ spec }) => spec.sources.includes(name)).map(({ spec }) => spec.name)
  if (users.length > 0) throw new ThvError('conflict', `source ${name} is used by registry ${users.join(', ')}`)
  removeSource(draft, name)
}

export function putRegistry(draft: Draft, spec: RegistrySpec): { created: boolean } {
  const old = draft.registries.get(spec.name)
  if (old) refuseConfigured('registry', spec.name, old.creation)
  setRegistry(draft, spec, { creation: 'API', position: 0, moved: false })
  return { created: old === undefined }
}

export function deleteRegistry(draft: Draft, name: string): void {
  const old = draft.registries.get(name)
  if (!old) throw new ThvError('not_found', `there is no registry ${name}`)
  refuseConfigured('registry', name, old.creation)
  draft.registries.delete(name)
  draft.takeStructure()
}

/** Whether a sync has to begin again: more than the claims are different. */
export function fetchesOther(old: SourceConfig, config: SourceConfig): boolean {
  return !jsonEqual({ ...old, claims: undefined }, { ...config, claims: undefined })
}

function setSource(draft: Draft, config: SourceConfig, creation: Creation): void {
  const { name } = config
  const old = draft.sources.get(name)
  const managed = sourceTypeOf(config) === 'managed'
  if (old && jsonEqual(old.config, config)) return
  const at = draft.time
  draft.takeStructure()
  if (!old || managed !== (sourceTypeOf(old.config) === 'managed')) {
    draft.sources.set(name, {
      id: draft.nextId(),
      config,
      creation,
      createdAt: at,
      updatedAt: at,
      sync: firstStatus(managed),
      state: undefined,
    })
    return
  }
  const { hash: _, ...rest } = old.sync
  const sync = fetchesOther(old.config, config) ? { sync: rest, state: undefined } : {}
  draft.sources.set(name, { ...old, config, updatedAt: at, ...sync })
}

interface Placing extends Pick<RegistryRow, 'creation' | 'position'> {
  readonly moved: boolean
}

function setRegistry(draft: Draft, spec: RegistrySpec, { creation, position, moved }: Placing): void {
  if (new Set(spec.sources).size < spec.sources.length) {
    throw new ThvError('bad_request', `registry ${spec.name} names a source twice`)
  }
  const unknown = spec.sources.filter((source) => !draft.sources.has(source))
  if (unknown.length > 0) throw new ThvError('bad_request', `registry ${spec.name} names source ${unknown.join(', ')}, which is not there`)
  const old = draft.registries.get(spec.name)
  if (old && jsonEqual(old.spec, spec) && !moved) {
    if (old.position !== position) draft.registries.set(spec.name, { ...old, position })
    return
  }
  const at = draft.time
  draft.takeStructure()
  draft.registries.set(spec.name, {
    id: old?.id ?? draft.nextId(),
    spec,
    creation,
    position,
    createdAt: old?.createdAt ?? at,
    updatedAt: at,
  })
}

function removeSource(draft: Draft, name: string): void {
  draft.sources.delete(name)
  draft.takeStructure()
  for (const [registry, row] of draft.registries) {
    if (!row.spec.sources.includes(name)) continue
    const spec = { ...row.spec, sources: row.spec.sources.filter((source) => source !== name) }
    draft.registries.set(registry, { ...row, spec, updatedAt: draft.time })
  }
}

function firstStatus(managed: boolean): SyncStatus {
  const phase = managed ? 'complete' : 'pending'
  return { phase, attemptCount: 0, serverCount: 0, message: '', problems: [], problemCount: 0 }
}

/** Afterwards, so that one source may take over from another. */
function refuseSecondManaged(draft: Draft): void {
  const names = [...draft.sources.values()].filter(({ config }) => sourceTypeOf(config) === 'managed').map(({ config }) => config.name)
  if (names.length > 1) throw new ThvError('conflict', `only one source can be managed, not ${names.join(' and ')}`)
}

function refuseConfigured(what: string, name: string, creation: Creation): void {
  if (creation === 'CONFIG') throw new ThvError('forbidden', `${what} ${name} was made by configuration and is changed there`)
}

function refuseTaken(what: string, name: string, row: { creation: Creation } | undefined): void {
  if (row?.creation === 'API')
    throw new ThvError('conflict', `${what} ${name} was made through the API already; delete it there or take another name`)
}
