import { type MCPServerEntry, mcpServerEntryType } from '@thv/resources/kinds/mcp-server-entry/schema'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import { referencesOfServerEntry } from '../../references/references.ts'

export const cache: CacheSpec<MCPServerEntry> = { type: mcpServerEntryType, references: referencesOfServerEntry }
