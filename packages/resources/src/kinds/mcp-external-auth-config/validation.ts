import {
  type CanonicalMCPExternalAuthConfigSpec,
  normaliseMcpExternalAuthConfig,
} from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { MANAGED_HEADERS } from '@thv/resources/shared/http-header'
import type { CanonicalInlineOidc } from '@thv/resources/shared/inline-oidc'
import { authServerProblems } from './auth-server-validation.ts'
import { AUTH_TYPES } from './constants.ts'
import { urlProblems } from './url-problems.ts'

export interface AuthConfigFindings {
  readonly spec: CanonicalMCPExternalAuthConfigSpec
  /** The configuration cannot be used. */
  readonly problems: readonly string[]
  /** It can be used, but somebody should know. */
  readonly warnings: readonly string[]
}

/**
 * Checks the spec alone, without the Secrets. It also repeats the checks of admission: objects may have been stored
 * before its rules were there. Pure.
 */
export function validateExternalAuthConfig(config: Pick<MCPExternalAuthConfig, 'spec'>): AuthConfigFindings {
  const { spec, problems } = normaliseMcpExternalAuthConfig(config)
  return {
    spec,
    problems: [
      ...problems.map(({ message }) => message),
      ...strayMembers(spec),
      ...tokenExchangeProblems(spec.tokenExchange),
      ...clientCredentialsProblems(spec.clientCredentials),
      ...headerProblems('spec.headerInjection.headerName', spec.headerInjection?.headerName),
      ...awsStsProblems(spec.awsSts),
      ...(spec.embeddedAuthServer ? authServerProblems('spec.embeddedAuthServer', spec.embeddedAuthServer) : []),
      ...(spec.oidc ? oidcProblems('spec.oidc', spec.oidc) : []),
    ],
    warnings: warningsOf(spec),
  }
}

function strayMembers(spec: CanonicalMCPExternalAuthConfigSpec): string[] {
  return AUTH_TYPES.filter((type) => type !== 'unauthenticated' && type !== spec.type && spec[type] !== undefined).map(
    (type) => `spec.${type} has no effect beside spec.type ${spec.type}: remove it`,
  )
}

function tokenExchangeProblems(exchange: CanonicalMCPExternalAuthConfigSpec['tokenExchange']): string[] {
  if (!exchange) return []
  const at = 'spec.tokenExchange'
  return [
    ...urlProblems(`${at}.tokenUrl`, exchange.tokenUrl, { allowHttp: true }),
    ...(exchange.clientSecretRef && !exchange.clientId ? [`${at}.clientSecretRef has no effect without clientId: set clientId`] : []),
    ...headerProblems(`${at}.externalTokenHeaderName`, exchange.externalTokenHeaderName),
  ]
}

function clientCredentialsProblems(client: CanonicalMCPExternalAuthConfigSpec['clientCredentials']): string[] {
  if (!client) return []
  const at = 'spec.clientCredentials'
  return [
    ...((client.tokenUrl === undefined) === (client.issuer === undefined) ? [`${at} must set exactly one of tokenUrl and issuer`] : []),
    ...urlProblems(`${at}.tokenUrl`, client.tokenUrl, { allowHttp: true }),
    ...urlProblems(`${at}.issuer`, client.issuer, { allowHttp: true }),
    ...(client.issuer !== undefined && /[?#]/.test(client.issuer) ? [`${at}.issuer must have no query and no fragment`] : []),
  ]
}

function headerProblems(field: string, name: string | undefined): string[] {
  const isManaged = name !== undefined && (MANAGED_HEADERS as readonly string[]).includes(name.toLowerCase())
  return isManaged ? [`${field} is a header that the proxy sets itself: choose another one`] : []
}

const ROLE_ARN = /^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/[A-Za-z0-9_+=,.@/-]+$/

function awsStsProblems(awsSts: CanonicalMCPExternalAuthConfigSpec['awsSts']): string[] {
  if (!awsSts) return []
  const at = 'spec.awsSts'
  const { fallbackRoleArn, roleMappings, sessionDuration } = awsSts
  const arnProblem = (field: string, arn: string | undefined) =>
    arn === undefined || ROLE_ARN.test(arn) ? [] : [`${field} is not the ARN of an IAM role`]
  return [
    ...(awsSts.region ? [] : [`${at}.region must be set`]),
    ...(fallbackRoleArn === undefined && roleMappings.length === 0 ? [`${at} must set fallbackRoleArn, roleMappings or both`] : []),
    ...arnProblem(`${at}.fallbackRoleArn`, fallbackRoleArn),
    ...roleMappings.flatMap(({ claim, matcher, roleArn }, index) => [
      ...((claim === undefined) === (matcher === undefined)
        ? [`${at}.roleMappings[${index}] must set exactly one of claim and matcher`]
        : []),
      ...arnProblem(`${at}.roleMappings[${index}].roleArn`, roleArn),
    ]),
    ...(sessionDuration < 900 || sessionDuration > 43_200 ? [`${at}.sessionDuration must be between 900 and 43200 seconds`] : []),
  ]
}

function oidcProblems(at: string, oidc: CanonicalInlineOidc): string[] {
  const rules = { allowHttp: oidc.insecureAllowHTTP, instead: 'insecureAllowHTTP' }
  const paths = { thvCABundlePath: oidc.thvCABundlePath, jwksAuthTokenPath: oidc.jwksAuthTokenPath }
  return [
    ...urlProblems(`${at}.issuer`, oidc.issuer, rules),
    ...(/[?#]/.test(oidc.issuer) ? [`${at}.issuer must have no query and no fragment`] : []),
    ...urlProblems(`${at}.jwksUrl`, oidc.jwksUrl, rules),
    ...urlProblems(`${at}.introspectionUrl`, oidc.introspectionUrl, rules),
    ...(oidc.clientSecret && oidc.clientSecretRef
      ? [`${at}.clientSecret and ${at}.clientSecretRef must not both be set: use clientSecretRef`]
      : []),
    ...(oidc.thvCABundlePath && oidc.caBundleRef
      ? [`${at}.thvCABundlePath and ${at}.caBundleRef must not both be set: use caBundleRef`]
      : []),
    ...Object.entries(paths)
      .filter(([, path]) => path && !path.startsWith('/'))
      .map(([member]) => `${at}.${member} must be the absolute path of a file in the proxy container`),
  ]
}

function warningsOf({ tokenExchange, clientCredentials, embeddedAuthServer, oidc }: CanonicalMCPExternalAuthConfigSpec): string[] {
  const isOpen = tokenExchange?.tokenUrl?.startsWith('http://') ?? false
  const isOpenClient = [clientCredentials?.tokenUrl, clientCredentials?.issuer].some((url) => url?.startsWith('http://'))
  const server = embeddedAuthServer
  return [
    ...(oidc?.insecureAllowHTTP ? ['spec.oidc.insecureAllowHTTP lets keys be replaced on the way'] : []),
    ...(oidc?.clientSecret
      ? ['spec.oidc.clientSecret is readable by everyone who may read this object: put it into a Secret and set clientSecretRef']
      : []),
    ...(isOpen ? ['spec.tokenExchange.tokenUrl is plain HTTP, so tokens travel in the clear'] : []),
    ...(isOpenClient ? ['spec.clientCredentials uses plain HTTP, so the client secret travels in the clear'] : []),
    ...(server?.insecureAllowHTTP ? ['spec.embeddedAuthServer.insecureAllowHTTP lets tokens travel in the clear'] : []),
    ...(server && server.signingKeySecretRefs.length === 0
      ? ['spec.embeddedAuthServer has no signingKeySecretRefs, so tokens die with the pod']
      : []),
  ]
}
