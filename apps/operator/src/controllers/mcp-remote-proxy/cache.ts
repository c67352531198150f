import { type MCPRemoteProxy, mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import { referencesOfRemoteProxy } from '../../references/references.ts'

export const cache: CacheSpec<MCPRemoteProxy> = { type: mcpRemoteProxyType, references: referencesOfRemoteProxy }
