import { type VirtualMCPServer, virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import { referencesOfVirtualServer } from '../../references/references.ts'
import { notImplementedController } from '../not-implemented/controller.ts'

/** Nothing runs for the kind yet, but config objects list who references them. */
const cache: CacheSpec<VirtualMCPServer> = { type: virtualMcpServerType, references: referencesOfVirtualServer }

export const controller = notImplementedController(cache)
