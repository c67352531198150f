import { compact, type ProblemList, unify } from '../../schema/normalize.ts'
import type { CanonicalEmbeddedAuthServer } from '../../shared/auth-server/embedded-auth-server.ts'
import { type AuthzConfig, type CanonicalAuthzConfig, normaliseAuthzConfig } from '../../shared/authz-config.ts'
import { type CanonicalOidcConfig, normaliseOidcConfig, type OidcConfig } from '../../shared/oidc-config.ts'
import type { FileIncomingAuth, IncomingAuth } from './incoming-auth.ts'
import type { VirtualMCPServer } from './schema.ts'

interface WithPolicies {
  authzConfig?: CanonicalAuthzConfig
}

export type CanonicalIncomingAuth = WithPolicies & ({ type: 'anonymous' } | { type: 'oidc'; oidcConfig: OwnOidcConfig })

/** Without `external`, which a VirtualMCPServer does not have. */
type OwnOidcConfig = Exclude<CanonicalOidcConfig, { type: 'external' }>

export interface NormalisedIncomingAuth {
  incomingAuth: CanonicalIncomingAuth | undefined
  authServerConfig: CanonicalEmbeddedAuthServer | undefined
}

/** Incoming authentication: `incomingAuth` out of its two spellings, and the authorization server that must fit it. */
export function normaliseIncomingAuth(
  problems: ProblemList,
  spec: Pick<VirtualMCPServer['spec'], 'incomingAuth' | 'config'>,
  authServer: CanonicalEmbeddedAuthServer | undefined,
): NormalisedIncomingAuth {
  const before = problems.all.length
  const file = spec.config?.incomingAuth
  const auth = unify(problems, {
    'spec.incomingAuth': spec.incomingAuth && canonicalAuth(problems, SPEC_WORDS, spec.incomingAuth),
    'spec.config.incomingAuth': file && canonicalAuth(problems, FILE_WORDS, inWordsOfTheSpec(file)),
  })
  if (!auth && problems.all.length === before) {
    problems.add('spec.incomingAuth', 'missing', 'spec.incomingAuth must be set, to {type: oidc, oidcConfig: …} or to {type: anonymous}')
  }
  return auth ? fitted(problems, auth, authServer) : { incomingAuth: auth, authServerConfig: authServer }
}

/** `primaryUpstreamProvider` of the policies is the older spelling of the one of the authorization server, and moves there. */
function fitted(
  problems: ProblemList,
  auth: CanonicalIncomingAuth,
  authServer: CanonicalEmbeddedAuthServer | undefined,
): NormalisedIncomingAuth {
  const { primary, incomingAuth } = withoutPrimary(auth)
  if (!authServer) {
    if (primary)
      problems.add(
        'spec.authServerConfig',
        'missing',
        `primaryUpstreamProvider ${primary} needs spec.authServerConfig, whose providers it names`,
      )
    return { incomingAuth: auth, authServerConfig: undefined }
  }
  if (auth.type !== 'oidc') {
    problems.add(
      'spec.authServerConfig',
      'forbidden',
      'spec.authServerConfig needs spec.incomingAuth of type oidc: who logs in there comes with a token',
    )
  } else if (auth.oidcConfig.type === 'inline' && auth.oidcConfig.inline.issuer !== authServer.issuer) {
    problems.add(
      'spec.authServerConfig.issuer',
      'forbidden',
      'spec.authServerConfig.issuer must be the issuer of spec.incomingAuth: the server accepts its own tokens',
    )
  }
  const primaryUpstreamProvider = unify(problems, {
    'spec.authServerConfig.primaryUpstreamProvider': authServer.primaryUpstreamProvider,
    'spec.incomingAuth.authzConfig.inline.primaryUpstreamProvider': primary,
  })
  if (primaryUpstreamProvider && !authServer.upstreamProviders.some(({ name }) => name === primaryUpstreamProvider)) {
    const field = 'spec.authServerConfig.primaryUpstreamProvider'
    problems.add(field, 'missing', `${field} must be the name of one of upstreamProviders, and ${primaryUpstreamProvider} is none`)
  }
  return { incomingAuth, authServerConfig: compact({ ...authServer, primaryUpstreamProvider }) }
}

function withoutPrimary(auth: CanonicalIncomingAuth): { primary: string | undefined; incomingAuth: CanonicalIncomingAuth } {
  const { authzConfig } = auth
  if (authzConfig?.type !== 'inline') return { primary: undefined, incomingAuth: auth }
  const { primaryUpstreamProvider: primary, ...inline } = authzConfig.inline
  return { primary, incomingAuth: { ...auth, authzConfig: { ...authzConfig, inline } } }
}

interface Words {
  oidc: string
  authz: string
}

const SPEC_WORDS: Words = { oidc: 'spec.incomingAuth.oidcConfig', authz: 'spec.incomingAuth.authzConfig' }
const FILE_WORDS: Words = { oidc: 'spec.config.incomingAuth.oidc', authz: 'spec.config.incomingAuth.authz' }

interface Settings {
  type: IncomingAuth['type']
  oidcConfig?: OidcConfig
  authzConfig?: AuthzConfig
}

function canonicalAuth(problems: ProblemList, words: Words, auth: Settings): CanonicalIncomingAuth | undefined {
  const policies = compact({ authzConfig: normaliseAuthzConfig(problems, words.authz, auth.authzConfig) })
  if (auth.type === 'anonymous') return { type: 'anonymous', ...policies }
  const oidcConfig = normaliseOidcConfig(problems, words.oidc, auth.oidcConfig)
  if (oidcConfig?.type === 'external') {
    problems.add(words.oidc, 'forbidden', `${words.oidc}.type external is for an MCPServer or MCPRemoteProxy: use another type`)
    return undefined
  }
  if (oidcConfig) return { type: 'oidc', oidcConfig, ...policies }
  if (!auth.oidcConfig) problems.add(words.oidc, 'missing', `${words.oidc} must be set, because type is oidc`)
  return undefined
}

function inWordsOfTheSpec({ type, oidc, authz }: FileIncomingAuth): Settings {
  return compact({ type, oidcConfig: oidc && oidcInWordsOfTheSpec(oidc), authzConfig: authz && authzInWordsOfTheSpec(authz) })
}

function oidcInWordsOfTheSpec(oidc: NonNullable<FileIncomingAuth['oidc']>): OidcConfig {
  const inline = compact({
    issuer: oidc.issuer,
    audience: oidc.audience,
    clientId: oidc.clientId,
    jwksUrl: oidc.jwksUrl,
    introspectionUrl: oidc.introspectionUrl,
    scopes: oidc.scopes,
    protectedResourceAllowPrivateIP: oidc.protectedResourceAllowPrivateIp,
    jwksAllowPrivateIP: oidc.jwksAllowPrivateIp,
    insecureAllowHTTP: oidc.insecureAllowHttp,
    thvCABundlePath: oidc.caBundlePath,
  })
  return compact({ type: 'inline' as const, resourceUrl: oidc.resource, inline })
}

function authzInWordsOfTheSpec(authz: NonNullable<FileIncomingAuth['authz']>): AuthzConfig | undefined {
  if (authz.type === 'none') return undefined
  const { policies = [], entitiesJson, primaryUpstreamProvider, groupClaimName, roleClaimName, groupEntityType } = authz
  return compact({
    type: 'inline' as const,
    inline: compact({ policies, entitiesJson, primaryUpstreamProvider }),
    groupClaimName,
    roleClaimName,
    groupEntityType,
  })
}
