import { normaliseMcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { compact } from '@thv/resources/schema/normalize'
import { variablePart } from '@thv/runconfig/forwarded-headers'
import type { BackendAuthConfig } from '../vmcp-config.ts'
import type { MemberProblem, SecretVariable } from './member-backend.ts'

export interface MemberAuth {
  readonly auth: BackendAuthConfig
  readonly secrets: readonly SecretVariable[]
}

/**
 * An MCPExternalAuthConfig as authentication to one backend of a virtual server. Pure. Loads no token: that happens when a call goes out.
 */
export function memberAuth(config: Pick<MCPExternalAuthConfig, 'spec'>, backend: string): MemberAuth | MemberProblem {
  const { spec, problems } = normaliseMcpExternalAuthConfig(config)
  const [problem] = problems
  if (problem !== undefined) return { reason: 'AuthUnavailable', message: problem.message }
  const variable = authVariable(backend)
  const { tokenExchange, headerInjection, bearerToken, clientCredentials, upstreamInject } = spec
  switch (spec.type) {
    case 'unauthenticated':
      return { auth: { type: 'unauthenticated' }, secrets: [] }
    case 'headerInjection':
      if (headerInjection === undefined) break
      return {
        auth: { type: 'header_injection', headerInjection: { headerName: headerInjection.headerName, headerValueEnv: variable } },
        secrets: [{ name: variable, secret: headerInjection.valueSecretRef }],
      }
    case 'bearerToken':
      if (bearerToken === undefined) break
      return {
        auth: { type: 'bearer_token', bearerToken: { tokenEnv: variable } },
        secrets: [{ name: variable, secret: bearerToken.tokenSecretRef }],
      }
    case 'clientCredentials': {
      if (clientCredentials === undefined) break
      const { clientId, clientSecretRef, tokenUrl, issuer, scopes, resource } = clientCredentials
      return {
        auth: {
          type: 'client_credentials',
          clientCredentials: compact({ clientId, clientSecretEnv: variable, tokenUrl, issuer, scopes, resource }),
        },
        secrets: [{ name: variable, secret: clientSecretRef }],
      }
    }
    case 'tokenExchange': {
      if (tokenExchange?.tokenUrl === undefined) break
      const { tokenUrl, clientId, clientSecretRef, audience, scopes, subjectTokenType, subjectProviderName } = tokenExchange
      return {
        auth: {
          type: 'token_exchange',
          tokenExchange: compact({
            ...{ tokenUrl, clientId, audience, scopes, subjectTokenType, subjectProviderName },
            clientSecretEnv: clientSecretRef && variable,
            headerName: tokenExchange.externalTokenHeaderName,
          }),
        },
        secrets: clientSecretRef === undefined ? [] : [{ name: variable, secret: clientSecretRef }],
      }
    }
    case 'upstreamInject':
      if (upstreamInject === undefined) break
      return { auth: { type: 'upstream_inject', upstreamInject }, secrets: [] }
    default:
      return { reason: 'Unsupported', message: `authentication of type ${spec.type} is not built for backends of a virtual server` }
  }
  return { reason: 'AuthUnavailable', message: `spec.${spec.type} is missing` }
}

export function isProblem(value: MemberAuth | MemberProblem): value is MemberProblem {
  return 'reason' in value
}

/** Names of resources are letters, digits, `-` and `.`: the last two must not lead to one variable. */
export function authVariable(backend: string): string {
  return `TOOLHIVE_SECRET_OUTGOING_AUTH_${variablePart(backend.replaceAll('.', '__'))}`
}
