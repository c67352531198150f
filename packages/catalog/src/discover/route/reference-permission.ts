import { GATEWAY_GROUP, type HttpRoute } from '../objects/http-route.ts'
import type { ReferenceGrant } from '../objects/reference-grant.ts'

export interface ReferenceTarget {
  readonly group: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** Whether a ReferenceGrant in the target's namespace lets HTTPRoutes of the route's namespace refer to the target. */
export function mayRefer(route: HttpRoute, target: ReferenceTarget, grants: Iterable<ReferenceGrant>): boolean {
  if (route.namespace === target.namespace) return true
  for (const grant of grants) {
    if (grant.namespace !== target.namespace) continue
    const from = grant.from.some(
      ({ group, kind, namespace }) => group === GATEWAY_GROUP && kind === 'HTTPRoute' && namespace === route.namespace,
    )
    const to = grant.to.some(
      ({ group, kind, name }) => group === target.group && kind === target.kind && (name === undefined || name === target.name),
    )
    if (from && to) return true
  }
  return false
}
