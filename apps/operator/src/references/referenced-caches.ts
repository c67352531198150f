import type { ResourceType } from '@thv/kube'
import { type MCPExternalAuthConfig, mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import { type MCPToolConfig, mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import type { CacheSpec } from '../caches/cache-spec.ts'
import { referencesOfExternalAuthConfig } from './references.ts'

/* Custom resources that others reference; the lookup reads them. */

export const groupCache: CacheSpec<MCPGroup> = { type: mcpGroupType as ResourceType<MCPGroup> }
export const toolConfigCache: CacheSpec<MCPToolConfig> = { type: mcpToolConfigType as ResourceType<MCPToolConfig> }
export const externalAuthConfigCache: CacheSpec<MCPExternalAuthConfig> = {
  type: mcpExternalAuthConfigType,
  references: referencesOfExternalAuthConfig,
}
