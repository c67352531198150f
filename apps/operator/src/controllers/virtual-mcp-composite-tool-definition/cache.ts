import {
  type VirtualMCPCompositeToolDefinition,
  virtualMcpCompositeToolDefinitionType,
} from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import type { CacheSpec } from '../../caches/cache-spec.ts'

export const cache: CacheSpec<VirtualMCPCompositeToolDefinition> = { type: virtualMcpCompositeToolDefinitionType }
