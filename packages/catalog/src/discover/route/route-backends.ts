import { ExportReason, type ExportWarning, exportWarning } from '../objects/export-warning.ts'
import type { BackendRef, HttpRoute, RouteRule } from '../objects/http-route.ts'
import type { McpResource } from '../objects/mcp-resource.ts'
import { resourceKey } from '../objects/mcp-resource.ts'
import type { ClusterLookup } from './cluster-lookup.ts'
import { serviceTarget } from './proxy-service.ts'
import { mayRefer } from './reference-permission.ts'
import { refOf } from './route-endpoints.ts'
import { externalPath, isServedPath, receivedPath, servedPaths } from './route-path.ts'

/** One MCP resource that a rule of the route leads to. */
export interface RouteBackend {
  readonly resource: McpResource
  readonly path: string
}

export interface RouteBackends {
  /** Each resource once, by its first rule. */
  readonly backends: readonly RouteBackend[]
  readonly warnings: readonly ExportWarning[]
}

export function routeBackends(route: HttpRoute, lookup: ClusterLookup): RouteBackends {
  const warnings: ExportWarning[] = []
  const warn = (reason: ExportReason, message: string) => warnings.push(exportWarning(reason, refOf(route), message))
  const byResource = new Map<string, RouteBackend>()
  const failures: string[] = []
  for (const rule of route.rules) {
    if (rule.redirects) continue
    const target = ruleTarget(rule, { route, lookup, warn, failures })
    if (target === undefined) continue
    const key = resourceKey(target.resource)
    if (byResource.has(key)) continue
    const path = pathOf(rule, target, warn)
    if (path !== undefined) byResource.set(key, { resource: target.resource, path })
  }
  if (byResource.size === 0 && warnings.every(({ level }) => level === 'info')) {
    const why = failures.length === 0 ? 'no rule has a Service as backend' : [...new Set(failures)].slice(0, 4).join('; ')
    warn(ExportReason.NoMCPBackend, `none of its backends is the proxy of an MCP resource: ${why}`)
  }
  return { backends: [...byResource.values()], warnings }
}

interface Evaluation {
  readonly route: HttpRoute
  readonly lookup: ClusterLookup
  readonly warn: (reason: ExportReason, message: string) => void
  readonly failures: string[]
}

interface RuleTarget {
  readonly resource: McpResource
  readonly backend: BackendRef
}

/** The MCP resource with the highest weight, the first of equals. A rule that leads past a proxy exports nothing. */
function ruleTarget(rule: RouteRule, { route, lookup, warn, failures }: Evaluation): RuleTarget | undefined {
  const targets: RuleTarget[] = []
  for (const backend of rule.backends) {
    if (backend.group !== '' || backend.kind !== 'Service' || backend.weight <= 0) continue
    const name = `Service ${backend.namespace}/${backend.name}`
    if (!mayRefer(route, backend, lookup.grants(backend.namespace))) {
      warn(
        ExportReason.ReferenceNotPermitted,
        `no ReferenceGrant in namespace ${backend.namespace} lets HTTPRoutes of namespace ${route.namespace} refer to ${name}`,
      )
      continue
    }
    const service = lookup.service(backend.namespace, backend.name)
    if (service === 'unreadable') failures.push(`${name} may not be read`)
    else if (service === undefined) failures.push(`${name} does not exist`)
    else {
      const target = serviceTarget(service, lookup.resource)
      if (target.found === 'server-pods') {
        warn(ExportReason.BypassesProxy, `${name} leads to the pods of an MCP server, past its proxy; use the Service of the proxy`)
        return undefined
      }
      if (target.found === 'nothing') failures.push(`${name}: ${target.why}`)
      else targets.push({ resource: target.resource, backend })
    }
  }
  const best = targets.reduce<RuleTarget | undefined>((a, b) => (a === undefined || b.backend.weight > a.backend.weight ? b : a), undefined)
  const others = new Set(targets.map(({ resource }) => resourceKey(resource))).size - 1
  if (best !== undefined && others > 0) {
    const { namespace, name } = best.resource
    warn(
      ExportReason.SharedRule,
      `a rule leads to several MCP resources and exports ${namespace}/${name}; give the others routes of their own`,
    )
  }
  return best
}

function pathOf(rule: RouteRule, { resource, backend }: RuleTarget, warn: Evaluation['warn']): string | undefined {
  const external = externalPath(rule)
  if (!external.ok) {
    warn(ExportReason.UnsupportedPathMatch, 'a rule has no Exact or PathPrefix match, so its URL is not known')
    return undefined
  }
  const { path, match } = external
  if (match.restricted)
    warn(ExportReason.RestrictedMatch, `${path} is matched with headers, query parameters or a method that clients may not send`)
  const received = receivedPath(match, rule, backend)
  if (!isServedPath(received, resource.remoteType)) {
    const filter = 'URLRewrite with path.type ReplacePrefixMatch and replacePrefixMatch /'
    warn(
      ExportReason.PathNotServed,
      `the proxy receives ${received}, but serves ${servedPaths(resource.remoteType)}; add the filter ${filter} to the rule`,
    )
  }
  return path
}
