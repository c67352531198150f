import type { ServedRegistry, ServedView } from '../../engine/engine.ts'
import type { Access, Caller } from './access-port.ts'
import { ApiError, unavailable } from './api-error.ts'
import type { ApiRequest } from './route.ts'

/** The registry of the path, or all of them as one where the path names none, if the caller may enter it. */
export function registryOf({ api, caller, params }: ApiRequest): ServedRegistry {
  const { engine, access } = api
  if (params.registryName === '') {
    // Which registry an entry came from is not known there, so the claims of registries could not be kept.
    if (caller.gated) throw new ApiError(403, 'forbidden: claims apply here, use the paths of one registry')
    return engine.aggregated
  }
  const registry = engine.registry(params.registryName)
  if (registry === undefined) throw new ApiError(404, 'registry not found')
  if (caller.gated && !access.maySee(caller, registry.claims)) throw new ApiError(403, 'forbidden: insufficient claims for registry')
  return registry
}

/** The caller's view. Immediate, unless claims hide something and the same view was never requested before. */
export function viewOf(request: ApiRequest): ServedView | Promise<ServedView> {
  const registry = registryOf(request)
  const { view } = registry
  if (view === undefined) throw unavailable('the registry is not loaded yet')
  const { access } = request.api
  const { caller } = request
  if (!caller.gated) return view
  const visible = visibleSets(registry, caller, access)
  return visible.length === registry.claimSets.length ? view : registry.viewFor(visible)
}

const known = new WeakMap<readonly unknown[], Map<string, readonly number[]>>()
const MAX_CALLERS = 1_000

/** Once per caller and set of claims: there may be many of both. */
function visibleSets({ claimSets }: ServedRegistry, caller: Caller, access: Access): readonly number[] {
  const remembered = known.get(claimSets)
  const callers = remembered !== undefined && remembered.size < MAX_CALLERS ? remembered : new Map<string, readonly number[]>()
  if (callers !== remembered) known.set(claimSets, callers)
  let visible = callers.get(caller.key)
  if (visible === undefined) {
    visible = claimSets.flatMap((claims, i) => (access.maySee(caller, claims) ? [i] : []))
    callers.set(caller.key, visible)
  }
  return visible
}
