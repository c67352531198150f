import type { ExportOptions } from '../objects/export-options.ts'
import { ExportReason, type ExportWarning, exportWarning } from '../objects/export-warning.ts'
import type { Gateway } from '../objects/gateway.ts'
import { GATEWAY_GROUP, type HttpRoute, type ParentRef } from '../objects/http-route.ts'
import type { ClusterLookup } from './cluster-lookup.ts'
import { addressHost } from './gateway-address.ts'
import { matchesWildcard } from './hostname.ts'
import { chooseListener, eligibleListeners } from './listener-choice.ts'
import { mayRefer } from './reference-permission.ts'

/** Scheme, host and port under which the outside reaches a route, without a path. */
export interface RouteEndpoint {
  readonly origin: string
  readonly gateway: string
}

export interface RouteEndpoints {
  /** In the order of parents, then of hostnames. */
  readonly endpoints: readonly RouteEndpoint[]
  readonly warnings: readonly ExportWarning[]
}

/** Follows the parents of a route to Gateways that have accepted it. */
export function routeEndpoints(route: HttpRoute, lookup: ClusterLookup, options: ExportOptions): RouteEndpoints {
  const parents = route.parents.filter(({ group, kind }) => group === GATEWAY_GROUP && kind === 'Gateway')
  const warnings: ExportWarning[] = []
  const warn = (reason: ExportReason, message: string) => warnings.push(exportWarning(reason, refOf(route), message))
  if (parents.length === 0) {
    warn(ExportReason.RouteNotAccepted, 'no Gateway parent; other parents are not read')
    return { endpoints: [], warnings }
  }
  const accepted = parents.filter((parent) => statusOf(route, parent).some((status) => status.accepted))
  if (accepted.length === 0) warn(ExportReason.RouteNotAccepted, `no Gateway has accepted it${reasonsOf(route)}`)
  const endpoints = accepted.flatMap((parent) => parentEndpoints(parent, { route, lookup, options, warn }))
  return { endpoints, warnings }
}

interface Evaluation {
  readonly route: HttpRoute
  readonly lookup: ClusterLookup
  readonly options: ExportOptions
  readonly warn: (reason: ExportReason, message: string) => void
}

function parentEndpoints(parent: ParentRef, { route, lookup, options, warn }: Evaluation): readonly RouteEndpoint[] {
  const name = `Gateway ${parent.namespace}/${parent.name}`
  if (statusOf(route, parent).every((status) => !status.accepted || status.unresolved)) {
    warn(ExportReason.BackendRefsNotResolved, `${name} could not resolve its backends`)
    return []
  }
  const byGrant = options.crossNamespaceGateway === 'referenceGrant'
  if (byGrant && !mayRefer(route, parent, lookup.grants(parent.namespace))) {
    warn(
      ExportReason.ReferenceNotPermitted,
      `no ReferenceGrant in namespace ${parent.namespace} lets HTTPRoutes of namespace ${route.namespace} refer to ${name}`,
    )
    return []
  }
  const gateway = lookup.gateway(parent.namespace, parent.name)
  if (gateway === 'unreadable') warn(ExportReason.GatewayNotReadable, `${name} may not be read; grant get, list and watch on gateways`)
  else if (gateway === undefined) warn(ExportReason.GatewayNotFound, `${name} does not exist`)
  else if (gateway.addresses.length === 0) warn(ExportReason.WaitingForGatewayAddress, `${name} has no address yet`)
  else return gatewayEndpoints(gateway, parent, { route, lookup, options, warn })
  return []
}

function gatewayEndpoints(gateway: Gateway, parent: ParentRef, { route, options, warn }: Evaluation): readonly RouteEndpoint[] {
  const name = `Gateway ${gateway.namespace}/${gateway.name}`
  const { crossNamespaceGateway } = options
  const listeners = eligibleListeners(gateway, { parent, routeNamespace: route.namespace, crossNamespaceGateway })
  const hostnames = route.hostnames.length === 0 ? [undefined] : route.hostnames
  const choices = hostnames.flatMap((hostname) => chooseListener(listeners, hostname) ?? [])
  if (choices.length === 0) {
    warn(ExportReason.NoMatchingListener, `no HTTP or HTTPS listener of ${name} that is programmed fits its section, port and hostnames`)
    return []
  }
  const concrete = choices.filter(({ host }) => host !== undefined)
  const chosen = concrete.length > 0 ? concrete : choices.slice(0, 1)
  const origins = chosen.flatMap(({ listener, host, wildcard }) => {
    const address = host ?? addressHost(gateway.addresses)
    if (address === undefined) {
      warn(ExportReason.UnsupportedGatewayAddress, `${name} has no address of type Hostname or IPAddress that a URL can name`)
      return []
    }
    if (wildcard !== undefined && !matchesWildcard(address, wildcard))
      warn(ExportReason.WildcardHostname, `the address ${address} of ${name} does not match ${wildcard}; name a hostname without wildcard`)
    const scheme = listener.protocol === 'HTTPS' ? 'https' : 'http'
    const port = listener.port === (scheme === 'https' ? 443 : 80) ? '' : `:${listener.port}`
    return [`${scheme}://${address}${port}`]
  })
  return [...new Set(origins)].map((origin) => ({ origin, gateway: gateway.name }))
}

/** Several controllers may report on one parent. */
function statusOf(route: HttpRoute, parent: ParentRef): readonly HttpRoute['status'][number][] {
  return route.status.filter(({ ref }) => sameParent(ref, parent))
}

function sameParent(a: ParentRef, b: ParentRef): boolean {
  return (
    a.group === b.group &&
    a.kind === b.kind &&
    a.namespace === b.namespace &&
    a.name === b.name &&
    a.sectionName === b.sectionName &&
    a.port === b.port
  )
}

function reasonsOf({ status }: HttpRoute): string {
  const reasons = new Set(status.flatMap(({ accepted, reason }) => (accepted || reason === undefined ? [] : [reason.slice(0, 100)])))
  return reasons.size === 0 ? '' : ` (${[...reasons].slice(0, 4).join(', ')})`
}

export function refOf({ namespace, name }: Pick<HttpRoute, 'namespace' | 'name'>) {
  return { kind: 'HTTPRoute', namespace, name } as const
}
