import type { Gateway } from '../objects/gateway.ts'
import type { ReferenceGrant } from '../objects/reference-grant.ts'
import type { BackendService } from '../objects/service.ts'
import type { FindResource } from './proxy-service.ts'

/** An object that exists but may not be read by this process. */
export type Unreadable = 'unreadable'

/** All that the evaluation of a route may ask for. */
export interface ClusterLookup {
  gateway(namespace: string, name: string): Gateway | Unreadable | undefined
  service(namespace: string, name: string): BackendService | Unreadable | undefined
  readonly resource: FindResource
  /** Of one namespace. */
  grants(namespace: string): Iterable<ReferenceGrant>
}
