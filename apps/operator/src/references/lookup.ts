import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPGroup } from '@thv/resources/kinds/mcp-group/schema'
import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'

/**
 * A resolver's view of the other objects in the namespace of a workload: a snapshot, so that resolving is a pure function of it.
 * Contents of Secrets are never in it.
 */
export interface Lookup {
  configMap(name: string): ConfigMapContent | undefined
  secret(name: string): SecretFacts | undefined
  toolConfig(name: string): MCPToolConfig | undefined
  externalAuthConfig(name: string): MCPExternalAuthConfig | undefined
  group(name: string): MCPGroup | undefined
}

export interface ConfigMapContent {
  readonly uid: string
  readonly resourceVersion: string
  readonly data: Readonly<Record<string, string>>
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>>
}

export interface SecretFacts {
  readonly uid: string
  readonly resourceVersion: string
  readonly keys: ReadonlySet<string>
  /** Kind and name of the object that made it, such as `MCPExternalAuthConfig login`; empty: none did. */
  readonly controller?: string
}
