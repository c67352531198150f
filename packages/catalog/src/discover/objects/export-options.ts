import type { McpResource } from './mcp-resource.ts'

export interface ExportOptions {
  /** `server`: the registry server reads the cluster. `operator`: the operator writes a ConfigMap, from URL and description alone. */
  readonly mode: 'server' | 'operator'
  /** Permission that a route needs to attach to a Gateway of another namespace. */
  readonly crossNamespaceGateway: CrossNamespaceGateway
  /** A DNS label that goes before the namespace in generated names. */
  readonly clusterName?: string
  /** Names of the tools that a running server offers, where they are known. */
  readonly toolsOf?: (resource: McpResource) => readonly string[] | undefined
}

/** A listener's namespace selector is left to the Gateway's controller: the route must be accepted anyway. */
export type CrossNamespaceGateway = 'referenceGrant' | 'allowedRoutes' | 'accepted'
