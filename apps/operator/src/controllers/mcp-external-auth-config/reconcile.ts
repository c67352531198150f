import type { ObjectKey, Outcome, ReconcileContext } from '@thv/kube'
import { MCP_EXTERNAL_AUTH_CONFIG_FINALIZER, MCPExternalAuthConfigCondition } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import { type MCPExternalAuthConfig, mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { Env } from '../../environment.ts'
import { authConfigConditions } from '../../references/judge-auth-config.ts'
import { loadLookup } from '../../references/load-lookup.ts'
import { externalAuthConfigCache } from '../../references/referenced-caches.ts'
import type { References } from '../../references/references.ts'
import { reconcileConfigObject } from '../config-object/reconcile.ts'

/** Only Secrets matter here, and those are looked up as they are needed. */
const NO_CONFIG_MAPS: References = { groups: [], toolConfigs: [], externalAuthConfigs: [], configMaps: [], secrets: [] }

export async function reconcileMcpExternalAuthConfig(key: ObjectKey, env: Env, context: ReconcileContext): Promise<Outcome> {
  const { namespace = '' } = key
  const lookup = await loadLookup(env, { namespace, references: NO_CONFIG_MAPS }, context.signal)
  const kind = {
    type: mcpExternalAuthConfigType,
    finalizer: MCP_EXTERNAL_AUTH_CONFIG_FINALIZER,
    references: 'externalAuthConfigs',
    cache: env.caches.of(externalAuthConfigCache),
    warnsWhenTrue: [MCPExternalAuthConfigCondition.IdentitySynthesized],
    judge: (config: MCPExternalAuthConfig) => authConfigConditions(config, lookup),
  } as const
  return await reconcileConfigObject<MCPExternalAuthConfig>(key, { env, context, kind })
}
