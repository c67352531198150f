import type { ExportOptions } from '../objects/export-options.ts'
import { ExportReason, type ExportWarning, exportWarning } from '../objects/export-warning.ts'
import type { HttpRoute } from '../objects/http-route.ts'
import { resourceKey } from '../objects/mcp-resource.ts'
import type { ClusterLookup } from './cluster-lookup.ts'
import { routeBackends } from './route-backends.ts'
import { refOf, routeEndpoints } from './route-endpoints.ts'

/** One URL under which a route reaches a resource. */
export interface RouteUrl {
  readonly url: string
  readonly gateway: string
}

export interface RouteEvaluation {
  /** By key of the resource. */
  readonly urls: ReadonlyMap<string, readonly RouteUrl[]>
  readonly warnings: readonly ExportWarning[]
}

/** All that one annotated route exports. */
export function evaluateRoute(route: HttpRoute, lookup: ClusterLookup, options: ExportOptions): RouteEvaluation {
  const { endpoints, warnings: outer } = routeEndpoints(route, lookup, options)
  const { backends, warnings: inner } = routeBackends(route, lookup)
  const urls = new Map<string, readonly RouteUrl[]>()
  const warnings = [...outer, ...inner]
  for (const { resource, path } of backends) {
    if (endpoints.length === 0) continue
    urls.set(
      resourceKey(resource),
      endpoints.map(({ origin, gateway }) => ({ url: `${origin}${path}`, gateway })),
    )
  }
  if (urls.size > 0 && endpoints.some(({ origin }) => origin.startsWith('http:')))
    warnings.push(exportWarning(ExportReason.InsecureURL, refOf(route), 'a URL without TLS is exported'))
  return { urls, warnings }
}
