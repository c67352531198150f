import { Discovery, type DiscoveryResult } from './discovery.ts'
import { type KnownServers, noKnownServers } from './entry/known-servers.ts'
import type { ClusterObjects } from './objects/cluster-objects.ts'
import type { ExportOptions } from './objects/export-options.ts'

/** The registry entries of a cluster, from its annotated resources and HTTPRoutes. Pure, and the same whatever the order of the objects. */
export function discover(objects: ClusterObjects, options: ExportOptions, known: KnownServers = noKnownServers): DiscoveryResult {
  return discoveryOf(objects, options, known).result()
}

export function discoveryOf(objects: ClusterObjects, options: ExportOptions, known: KnownServers): Discovery {
  const discovery = new Discovery(options)
  discovery.setKnownServers(known)
  for (const resource of objects.resources) discovery.setResource(resource)
  for (const service of objects.services) discovery.setService(service)
  for (const gateway of objects.gateways) discovery.setGateway(gateway)
  for (const grant of objects.grants) discovery.setGrant(grant)
  for (const key of objects.unreadable ?? []) discovery.setUnreadable(key)
  for (const route of objects.routes) discovery.setRoute(route)
  return discovery
}
