import type { Gateway } from './gateway.ts'
import type { HttpRoute } from './http-route.ts'
import type { McpResource } from './mcp-resource.ts'
import type { ReferenceGrant } from './reference-grant.ts'
import type { BackendService } from './service.ts'

/** All that a cluster has for the export. Routes are the annotated ones. */
export interface ClusterObjects {
  readonly resources: readonly McpResource[]
  readonly routes: readonly HttpRoute[]
  readonly services: readonly BackendService[]
  readonly gateways: readonly Gateway[]
  readonly grants: readonly ReferenceGrant[]
  /** `Gateway/namespace/name` and `Service/namespace/name` of those that may not be read. */
  readonly unreadable?: readonly string[]
}
