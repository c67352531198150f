import type { CrossNamespaceGateway } from '../objects/export-options.ts'
import type { Gateway, Listener } from '../objects/gateway.ts'
import type { ParentRef } from '../objects/http-route.ts'
import { intersectHostnames, isConcreteHostname, isWildcard } from './hostname.ts'

export interface ListenerRules {
  readonly parent: ParentRef
  readonly routeNamespace: string
  readonly crossNamespaceGateway: CrossNamespaceGateway
}

/** Listeners that may carry the route, in the order of the spec. */
export function eligibleListeners(gateway: Gateway, { parent, routeNamespace, crossNamespaceGateway }: ListenerRules): Listener[] {
  return gateway.listeners.filter(
    (listener) =>
      (parent.sectionName === undefined || parent.sectionName === listener.name) &&
      (parent.port === undefined || parent.port === listener.port) &&
      (listener.protocol === 'HTTPS' || listener.protocol === 'HTTP') &&
      listener.port >= 1 &&
      listener.port <= 65_535 &&
      listener.usable &&
      (crossNamespaceGateway !== 'allowedRoutes' || admits(listener, gateway.namespace === routeNamespace)),
  )
}

function admits({ from }: Listener, sameNamespace: boolean): boolean {
  return from === 'All' || from === 'Selector' || (from === 'Same' && sameNamespace)
}

export interface ChosenListener {
  readonly listener: Listener
  /** A concrete host, or undefined where only the Gateway's address can be named. */
  readonly host: string | undefined
  /** The wildcard that the Gateway's address should match. */
  readonly wildcard: string | undefined
}

/** The listener for one hostname of the route: HTTPS first, then the most specific hostname, then the order of the spec. */
export function chooseListener(listeners: readonly Listener[], hostname: string | undefined): ChosenListener | undefined {
  let best: { choice: ChosenListener; rank: readonly [number, number] } | undefined
  for (const listener of listeners) {
    const met = intersectHostnames(listener.hostname, hostname)
    if (met === undefined) continue
    const wildcard = isWildcard(met) ? met : undefined
    const concrete = met === '' || wildcard !== undefined ? undefined : met
    if (concrete !== undefined && !isConcreteHostname(concrete)) continue
    const rank = [listener.protocol === 'HTTPS' ? 0 : 1, -specificity(listener.hostname)] as const
    if (best === undefined || rank[0] < best.rank[0] || (rank[0] === best.rank[0] && rank[1] < best.rank[1]))
      best = { choice: { listener, host: concrete, wildcard }, rank }
  }
  return best?.choice
}

/** Exact before a longer wildcard before none. */
function specificity(hostname: string | undefined): number {
  if (hostname === undefined) return 0
  return isWildcard(hostname) ? hostname.length : 1_000
}
