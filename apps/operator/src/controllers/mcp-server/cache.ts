import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import { referencesOfServer } from '../../references/references.ts'

export const cache: CacheSpec<MCPServer> = { type: mcpServerType, references: referencesOfServer }
