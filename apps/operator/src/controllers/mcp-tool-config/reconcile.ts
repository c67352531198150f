import type { ObjectKey, Outcome, ReconcileContext, ResourceType } from '@thv/kube'
import { MCP_TOOL_CONFIG_FINALIZER } from '@thv/resources/kinds/mcp-tool-config/constants'
import { type MCPToolConfig, mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import type { Env } from '../../environment.ts'
import { judgeToolConfig } from '../../references/judge-tool-config.ts'
import { reconcileConfigObject } from '../config-object/reconcile.ts'

const type = mcpToolConfigType as ResourceType<MCPToolConfig>

export async function reconcileMcpToolConfig(key: ObjectKey, env: Env, context: ReconcileContext): Promise<Outcome> {
  const kind = {
    type,
    finalizer: MCP_TOOL_CONFIG_FINALIZER,
    references: 'toolConfigs',
    cache: env.caches.toolConfigs,
    judge: judgeToolConfig,
  } as const
  return await reconcileConfigObject<MCPToolConfig>(key, { env, context, kind })
}
