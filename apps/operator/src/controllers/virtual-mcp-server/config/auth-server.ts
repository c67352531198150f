import type { ConditionUpdate } from '@thv/kube'
import { authServerProblems } from '@thv/resources/kinds/mcp-external-auth-config/auth-server-validation'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import type { OidcClientConfig, VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { ManagedKeys } from '../../../auth-server/ensure-managed-keys.ts'
import { managedSecretName } from '../../../auth-server/managed-keys.ts'
import type { Blocker, Contribution } from '../../../deployment/contribution.ts'
import { authServerContribution, authServerMismatches } from '../../../proxy/resolve/auth-server.ts'
import { authServerSecretUses, missingSecrets } from '../../../references/auth-config-secrets.ts'
import { identityCondition } from '../../../references/judge-auth-config.ts'
import type { Lookup } from '../../../references/lookup.ts'

export interface AuthServerPart {
  readonly document: VmcpConfig['authServer']
  readonly contributions: readonly Contribution[]
  readonly conditions: readonly ConditionUpdate[]
  readonly blockers: readonly Blocker[]
}

interface Deps {
  readonly name: string
  readonly namespace: string
  readonly clusterDomain: string
  /** How clients authenticate; undefined while that has a problem of its own. */
  readonly oidc: OidcClientConfig | undefined
  /** Of the virtual server, where the OIDC configuration names no other. */
  readonly url: string
  readonly lookup: Pick<Lookup, 'secret'>
  /** Undefined: the spec names all keys. */
  readonly keys: ManagedKeys | undefined
}

const AT = 'authServerConfig'
const NOTHING: AuthServerPart = { document: undefined, contributions: [], conditions: [], blockers: [] }

/** The authorization server inside the virtual server: its part of the file, and its keys and secrets as files of the pods. Pure. */
export function authServerOf(server: CanonicalEmbeddedAuthServer | undefined, deps: Deps): AuthServerPart {
  if (server === undefined) return NOTHING
  const { oidc, lookup, keys, name } = deps
  const resourceUrl = oidc?.resource ?? deps.url
  const problems = [
    ...authServerProblems(`spec.${AT}`, server),
    ...missingSecrets(authServerSecretUses(server, AT), lookup),
    ...(oidc === undefined ? [] : authServerMismatches(server, { oidc, resourceUrl }).map(inOwnWords)),
    ...(keys?.ok === false ? [`Secret ${keys.secret} is in the way of the keys that the operator makes: rename it or delete it`] : []),
  ]
  const identity = identityCondition(server)
  if (problems.length > 0) {
    const blocker = { condition: Condition.AuthServerConfigValidated, reason: Reason.AuthServerConfigInvalid, message: problems.join('; ') }
    return { ...NOTHING, blockers: [blocker], conditions: [identity] }
  }
  const place = { ...deps, scopes: oidc?.scopes ?? [], resourceUrl, managedSecret: managedSecretName('VirtualMCPServer', name) }
  const { runConfig, ...contribution } = authServerContribution(server, place)
  return {
    document: runConfig?.embedded_auth_server_config,
    contributions: [contribution],
    conditions: [
      {
        type: Condition.AuthServerConfigValidated,
        status: 'True',
        reason: Reason.AuthServerConfigValid,
        message: 'clients log in to this server',
      },
      identity,
      ...(keys === undefined ? [] : [managedCondition(keys.secret)]),
    ],
    blockers: [],
  }
}

function managedCondition(secret: string): ConditionUpdate {
  const message = `the operator makes the keys in Secret ${secret} and replaces them every 90 days`
  return { type: Condition.SigningKeysManaged, status: 'True', reason: Reason.KeysMadeByOperator, message }
}

function inOwnWords(message: string): string {
  return message.replaceAll('spec.oidcConfig', 'spec.incomingAuth.oidcConfig')
}
