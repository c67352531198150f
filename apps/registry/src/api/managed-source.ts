import type { Claims } from '@thv/catalog/sources/source-config'
import type { SourceRecord } from '../store/registry-store.ts'
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

/** Claims of what is published under a name, deleted or not, if it has its own; else those of its source. */
export async function claimsAt(request: ApiRequest, source: SourceRecord, name: string): Promise<Claims | undefined> {
  const [entry] = await request.api.engine.admin.versionsOf(source.config.name, name)
  return entry?.claims ?? source.config.claims
}

export function maySee({ api, caller }: ApiRequest, claims: Claims | undefined): boolean {
  return !caller.gated || api.access.maySee(caller, claims)
}

export function mustSee(request: ApiRequest, claims: Claims | undefined): void {
  if (!maySee(request, claims)) throw new ApiError(403, 'forbidden: insufficient claims')
}

export function mustSet({ api, caller }: ApiRequest, claims: Claims | undefined): void {
  if (caller.gated && !api.access.maySet(caller, claims)) throw new ApiError(403, 'forbidden: these claims are not all yours to set')
}
