import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import type { NewEntry, SourceRecord, StoredEntry } from '../../store/registry-store.ts'
import { ApiError } from './api-error.ts'
import type { ApiRequest } from './route.ts'
import { registryOf } from './visible-view.ts'

/** The source that the registry of the path can be written to; of all registries where the path names none. 501: there is none. */
export async function managedSourceOf(request: ApiRequest): Promise<SourceRecord> {
  const { admin } = request.api.engine
  const registry = registryOf(request)
  const [registries, sources] = await Promise.all([admin.registries(), admin.sources()])
  const named = request.params.registryName === '' ? registries : registries.filter(({ spec }) => spec.name === registry.name)
  const names = new Set(named.flatMap(({ spec }) => spec.sources))
  const managed = sources.find(({ config }) => config.managed !== undefined && names.has(config.name))
  if (managed === undefined) throw new ApiError(501, 'this registry has no managed source: it cannot be written to')
  return managed
}

/** Where `/v1/entries` writes: there is one managed source at most. */
export async function theManagedSource({ api }: ApiRequest): Promise<SourceRecord> {
  const managed = (await api.engine.admin.sources()).find(({ config }) => config.managed !== undefined)
  if (managed === undefined) throw new ApiError(501, 'no managed source available for publishing')
  return managed
}

/**
 * Whether the caller may write what is published under a name: its own claims count, also those of deleted versions, else those of its
 * source. The result goes with the write, so that they cannot change in between.
 */
export async function mustSetName(request: ApiRequest, source: SourceRecord, name: string): Promise<Pick<NewEntry, 'ifClaims'>> {
  const [entry] = await request.api.engine.admin.versionsOf(source.config.name, name)
  const refusal = entry?.claims
    ? 'forbidden: the claims of this server are not all yours'
    : 'forbidden: the claims of the managed source are not all yours; /v1/entries publishes with other claims'
  mustSet(request, entry?.claims ?? source.config.claims, refusal)
  return asSeen(entry)
}

/** A name that another source serves in its place would be published and never seen. 409 says which source has it. */
export async function mustBeServed(request: ApiRequest, managed: SourceRecord, name: string): Promise<void> {
  const { admin } = request.api.engine
  const { registryName } = request.params
  const [registries, sources] = await Promise.all([admin.registries(), admin.sources()])
  const visible = new Set(sources.filter(({ config }) => maySee(request, config.claims)).map(({ config }) => config.name))
  const own = managed.config.name
  const lists = registries
    .filter(({ spec }) => spec.sources.includes(own) && (registryName === '' || spec.name === registryName))
    .map(({ spec }) => spec.sources.slice(0, spec.sources.indexOf(own)).filter((source) => visible.has(source)))
  const holders = new Set<string>()
  for (const source of new Set(lists.flat())) {
    const versions = await admin.versionsOf(source, name)
    if (versions.some(({ status }) => status !== 'deleted')) holders.add(source)
  }
  const [first] = holders
  if (first !== undefined && lists.every((list) => list.some((source) => holders.has(source))))
    throw new ApiError(409, `${name} is a server of the source ${first}, which is listed before ${own}: choose another name`)
}

/** A write goes through only if the claims are still those that it was decided by. */
export function asSeen(entry: StoredEntry | undefined): { readonly ifClaims: Claims | null } {
  return { ifClaims: entry?.claims ?? null }
}

export function maySee({ api, caller }: ApiRequest, claims: Claims | undefined): boolean {
  return !caller.gated || api.access.maySee(caller, claims)
}

export function mustSee(request: ApiRequest, claims: Claims | undefined): void {
  if (!maySee(request, claims)) throw new ApiError(403, 'forbidden: insufficient claims')
}

export function mustSet(
  { api, caller }: ApiRequest,
  claims: Claims | undefined,
  refusal = 'forbidden: these claims are not all yours to set',
): void {
  if (caller.gated && !api.access.maySet(caller, claims)) throw new ApiError(403, refusal)
}
