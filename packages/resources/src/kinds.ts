import { mcpGroup } from './kinds/mcp-group/schema.ts'
import { mcpRegistry } from './kinds/mcp-registry/schema.ts'
import { mcpToolConfig } from './kinds/mcp-tool-config/schema.ts'
import type { KindDefinition } from './schema/kind-definition.ts'

/** All custom resources, in the order in which people meet them. */
export const KINDS: readonly KindDefinition[] = [mcpGroup, mcpRegistry, mcpToolConfig]
