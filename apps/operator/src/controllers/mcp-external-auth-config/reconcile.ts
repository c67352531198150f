import { type ConditionUpdate, done, type ObjectKey, type Outcome, type ReconcileContext, requeueAfter } from '@thv/kube'
import {
  MCP_EXTERNAL_AUTH_CONFIG_FINALIZER,
  MCPExternalAuthConfigCondition,
  MCPExternalAuthConfigReason,
} from '@thv/resources/kinds/mcp-external-auth-config/constants'
import { normaliseMcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import { type MCPExternalAuthConfig, mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { ensureManagedKeys, type ManagedKeys } from '../../auth-server/ensure-managed-keys.ts'
import { needsManagedKeys } from '../../auth-server/managed-keys.ts'
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
  const cache = env.caches.of(externalAuthConfigCache)
  const keys = await managedKeys(cache.get(key), env, context.signal)
  const kind = {
    type: mcpExternalAuthConfigType,
    finalizer: MCP_EXTERNAL_AUTH_CONFIG_FINALIZER,
    references: 'externalAuthConfigs',
    cache,
    warnsWhenTrue: [MCPExternalAuthConfigCondition.IdentitySynthesized],
    judge: (config: MCPExternalAuthConfig) => withKeys(authConfigConditions(config, lookup), keys),
  } as const
  const outcome = await reconcileConfigObject<MCPExternalAuthConfig>(key, { env, context, kind })
  if (outcome !== done || keys === undefined) return outcome
  // Neither a rotation nor the end of somebody else's Secret is announced by an event.
  return requeueAfter(keys.ok ? Math.min(keys.untilRotationMs, LOOK_AGAIN_MS) : NAME_TAKEN_MS)
}

const LOOK_AGAIN_MS = 24 * 3_600_000
const NAME_TAKEN_MS = 60_000

/** Undefined: the spec names all keys, or needs none. */
async function managedKeys(config: MCPExternalAuthConfig | undefined, env: Env, signal: AbortSignal): Promise<ManagedKeys | undefined> {
  if (config === undefined || config.metadata.deletionTimestamp !== undefined) return undefined
  const { embeddedAuthServer: server } = normaliseMcpExternalAuthConfig(config).spec
  if (server === undefined || !needsManagedKeys(server)) return undefined
  return await ensureManagedKeys({ object: config, type: mcpExternalAuthConfigType, kind: 'MCPExternalAuthConfig' }, env, signal)
}

function withKeys(judged: ReturnType<typeof authConfigConditions>, keys: ManagedKeys | undefined): ReturnType<typeof authConfigConditions> {
  const type = MCPExternalAuthConfigCondition.SigningKeysManaged
  if (keys === undefined) return { ...judged, absent: [...judged.absent, type] }
  const condition: ConditionUpdate = keys.ok
    ? {
        ...{ type, status: 'True', reason: MCPExternalAuthConfigReason.KeysMadeByOperator },
        message: `the operator makes the keys in Secret ${keys.secret} and replaces them every 90 days`,
      }
    : {
        ...{ type, status: 'False', reason: MCPExternalAuthConfigReason.SecretNameTaken },
        message: `Secret ${keys.secret} is in the way of the keys that the operator makes: rename it or delete it`,
      }
  return { ...judged, conditions: [...judged.conditions, condition] }
}
