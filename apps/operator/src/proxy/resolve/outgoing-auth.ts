import type { CanonicalMCPExternalAuthConfigSpec } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import { type EnvVar, secretVariable } from '../../deployment/contribution.ts'
import type { Contribution } from '../contribution.ts'
import { HEADER_TOKEN, HEADER_TYPES, HEADER_VALUE, NAMED_SECRET_PREFIX, TOKEN_EXCHANGE_SECRET } from './external-auth-table.ts'

/** How requests to the server are authenticated: everything but `embeddedAuthServer` and `oidc`, which are about those that come in. */
export type OutgoingSpec = CanonicalMCPExternalAuthConfigSpec & {
  readonly type: Exclude<CanonicalMCPExternalAuthConfigSpec['type'], 'embeddedAuthServer' | 'oidc'>
}

export interface OutgoingPlace {
  readonly kind: 'MCPServer' | 'MCPRemoteProxy'
  /** The server's transport. */
  readonly transport?: string | undefined
  readonly oidc: OidcConfig | 'unresolved' | undefined
  /** The embedded server that `authServerRef` names, if it is usable. */
  readonly login: CanonicalEmbeddedAuthServer | undefined
  readonly hasAuthServerRef: boolean
}

/** Why a valid configuration does not fit where it is used. Pure. */
export function outgoingProblems(spec: OutgoingSpec, place: OutgoingPlace): string[] {
  const { type } = spec
  const isHeader = (HEADER_TYPES as ReadonlySet<string>).has(type)
  const provider = spec.tokenExchange?.subjectProviderName ?? spec.awsSts?.subjectProviderName ?? spec.upstreamInject?.providerName
  return [
    ...(isHeader && place.kind === 'MCPServer' && place.transport === 'stdio'
      ? [`type ${type} sets a header, and a server that speaks stdio gets none: give it the credentials with spec.secrets`]
      : []),
    ...(type === 'awsSts' && place.oidc === undefined
      ? ["type awsSts picks the role by the caller's claims: set spec.oidcConfig, so that they are known"]
      : []),
    ...(provider === undefined ? [] : providerProblems(provider, place)),
    ...(place.login?.disableUpstreamTokenInjection && NEEDS_TOKEN.has(type)
      ? [`type ${type} needs the token that disableUpstreamTokenInjection of the embedded server removes: set that to false`]
      : []),
  ]
}

const NEEDS_TOKEN: ReadonlySet<string> = new Set(['tokenExchange', 'awsSts', 'upstreamInject'])

function providerProblems(provider: string, { login, hasAuthServerRef }: OutgoingPlace): string[] {
  if (!hasAuthServerRef) {
    return [`it uses the token of the upstream provider ${provider}: set spec.authServerRef to an embedded server with that provider`]
  }
  // Without a usable server its own condition says what to do.
  if (login === undefined || login.upstreamProviders.some(({ name }) => name === provider)) return []
  return [`it names the upstream provider ${provider}, and the embedded server of spec.authServerRef has none of that name`]
}

/** The contribution of a configuration that is valid and fits. Pure. */
export function outgoingContribution(spec: OutgoingSpec, { kind }: Pick<OutgoingPlace, 'kind'>): Contribution {
  const { tokenExchange, headerInjection, bearerToken, clientCredentials, awsSts, upstreamInject } = spec
  if (tokenExchange) return tokenExchangeContribution(tokenExchange)
  if (headerInjection) {
    return {
      runConfig: { header_injection_config: { header_name: headerInjection.headerName, header_value_env: HEADER_VALUE } },
      env: [secretVariable(HEADER_VALUE, headerInjection.valueSecretRef)],
    }
  }
  if (bearerToken) return kind === 'MCPServer' ? injectedBearer(bearerToken) : remoteBearer(bearerToken)
  if (clientCredentials) return clientCredentialsContribution(clientCredentials)
  if (awsSts) return awsStsContribution(awsSts)
  if (upstreamInject) {
    return { runConfig: { upstream_swap_config: { provider_name: upstreamInject.providerName, header_strategy: 'replace' } } }
  }
  return {}
}

type Member<K extends keyof CanonicalMCPExternalAuthConfigSpec> = NonNullable<CanonicalMCPExternalAuthConfigSpec[K]>

function tokenExchangeContribution(exchange: Member<'tokenExchange'>): Contribution {
  const { tokenUrl = '', audience, clientId, clientSecretRef, scopes, subjectTokenType, externalTokenHeaderName } = exchange
  const { subjectProviderName } = exchange
  return {
    runConfig: {
      token_exchange_config: {
        token_url: tokenUrl,
        ...(clientId !== undefined && { client_id: clientId }),
        audience,
        scopes,
        ...(subjectTokenType !== undefined && { subject_token_type: tokenTypeUrn(subjectTokenType) }),
        ...(subjectProviderName !== undefined && { subject_provider_name: subjectProviderName }),
        ...(externalTokenHeaderName === undefined
          ? { header_strategy: 'replace' }
          : { header_strategy: 'custom', external_token_header_name: externalTokenHeaderName }),
      },
    },
    env: clientSecretRef ? [secretVariable(TOKEN_EXCHANGE_SECRET, clientSecretRef)] : [],
  }
}

const TOKEN_TYPE_URN = 'urn:ietf:params:oauth:token-type:'

function tokenTypeUrn(type: string): string {
  return type.startsWith(TOKEN_TYPE_URN) ? type : `${TOKEN_TYPE_URN}${type}`
}

/** The kubelet replaces $(NAME) by a variable that stands before it, so that the value is complete and stays out of the RunConfig. */
function injectedBearer({ tokenSecretRef }: Member<'bearerToken'>): Contribution {
  const value: EnvVar = { name: HEADER_VALUE, value: `Bearer $(${HEADER_TOKEN})` }
  return {
    runConfig: { header_injection_config: { header_name: 'Authorization', header_value_env: HEADER_VALUE } },
    env: [secretVariable(HEADER_TOKEN, tokenSecretRef), value],
  }
}

function remoteBearer({ tokenSecretRef }: Member<'bearerToken'>): Contribution {
  const { name } = tokenSecretRef
  return {
    runConfig: {
      remote_auth_config: { bearer_token: `${name},target=bearer_token`, scopes: [], use_pkce: false, oauth_params: {} },
    },
    env: [secretVariable(`${NAMED_SECRET_PREFIX}${name}`, tokenSecretRef)],
  }
}

function clientCredentialsContribution(client: Member<'clientCredentials'>): Contribution {
  const { clientId, clientSecretRef, tokenUrl, issuer, scopes, resource } = client
  const { name } = clientSecretRef
  return {
    runConfig: {
      remote_auth_config: {
        client_id: clientId,
        client_secret: `${name},target=client_secret`,
        ...(tokenUrl !== undefined && { token_url: tokenUrl }),
        ...(issuer !== undefined && { issuer }),
        scopes,
        ...(resource !== undefined && { resource }),
        use_pkce: false,
        oauth_params: {},
      },
    },
    env: [secretVariable(`${NAMED_SECRET_PREFIX}${name}`, clientSecretRef)],
  }
}

function awsStsContribution(awsSts: Member<'awsSts'>): Contribution {
  return {
    runConfig: {
      aws_sts_config: {
        region: awsSts.region,
        service: awsSts.service,
        ...(awsSts.fallbackRoleArn !== undefined && { fallback_role_arn: awsSts.fallbackRoleArn }),
        role_mappings: awsSts.roleMappings.map(({ claim, matcher, roleArn, priority }) => ({
          ...(claim !== undefined && { claim }),
          ...(matcher !== undefined && { matcher }),
          role_arn: roleArn,
          ...(priority !== undefined && { priority }),
        })),
        role_claim: awsSts.roleClaim,
        session_duration: awsSts.sessionDuration,
        session_name_claim: awsSts.sessionNameClaim,
        ...(awsSts.subjectProviderName !== undefined && { subject_provider_name: awsSts.subjectProviderName }),
      },
    },
  }
}
