import { type VirtualMCPServer, virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import { referencesOfVirtualServer } from '../../references/references.ts'

export const cache: CacheSpec<VirtualMCPServer> = { type: virtualMcpServerType, references: referencesOfVirtualServer }
