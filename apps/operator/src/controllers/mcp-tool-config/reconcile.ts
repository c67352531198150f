import type { ObjectKey, Outcome, ReconcileContext } from '@thv/kube'
import { MCP_TOOL_CONFIG_FINALIZER } from '@thv/resources/kinds/mcp-tool-config/constants'
import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import type { Env } from '../../environment.ts'
import { judgeToolConfig } from '../../references/judge-tool-config.ts'
import { toolConfigCache } from '../../references/referenced-caches.ts'
import { reconcileConfigObject } from '../config-object/reconcile.ts'

export async function reconcileMcpToolConfig(key: ObjectKey, env: Env, context: ReconcileContext): Promise<Outcome> {
  const kind = {
    type: toolConfigCache.type,
    finalizer: MCP_TOOL_CONFIG_FINALIZER,
    references: 'toolConfigs',
    cache: env.caches.of(toolConfigCache),
    judge: judgeToolConfig,
  } as const
  return await reconcileConfigObject<MCPToolConfig>(key, { env, context, kind })
}
