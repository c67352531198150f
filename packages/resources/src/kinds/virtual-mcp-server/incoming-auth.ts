import type { Static } from 'typebox'
import { unionRules } from '../../schema/cel.ts'
import { bool, list, obj, oneOf, opt, rejected, str } from '../../schema/nodes.ts'
import { authzConfig } from '../../shared/authz-config.ts'
import { incomingOidcConfig } from '../../shared/oidc-config.ts'
import { rejectedString } from './rejected-nodes.ts'
import { UNSUPPORTED } from './unsupported.ts'

/** How clients prove who they are, and what they may do then. */
export const incomingAuth = () =>
  obj(
    'Authentication and authorization of clients.',
    {
      type: oneOf('anonymous disables authentication; oidc requires a token.', ['anonymous', 'oidc']),
      oidcConfig: opt(incomingOidcConfig('Accepted tokens.')),
      authzConfig: opt(authzConfig('Authorization policies. Without them, every authenticated client may do everything.')),
      oidcConfigRef: opt(rejected(UNSUPPORTED['incomingAuth.oidcConfigRef'])),
      authzConfigRef: opt(rejected(UNSUPPORTED['incomingAuth.authzConfigRef'])),
    },
    { rules: unionRules('type', { oidc: 'oidcConfig' }) },
  )

export type IncomingAuth = Static<ReturnType<typeof incomingAuth>>

/** The same in the words of the vMCP configuration file, as people write it below `config`. */
export const fileIncomingAuth = () =>
  obj(
    'Other spelling of spec.incomingAuth, as in the configuration file of the virtual server. Both must agree.',
    {
      type: oneOf('anonymous disables authentication; oidc requires a token.', ['anonymous', 'oidc']),
      oidc: opt(fileOidc()),
      authz: opt(fileAuthz()),
    },
    { rules: unionRules('type', { oidc: 'oidc' }) },
  )

export type FileIncomingAuth = Static<ReturnType<typeof fileIncomingAuth>>

const URL_LIMITS = { minLength: 1, maxLength: 2048 }

const fileOidc = () =>
  obj(
    'Accepted tokens.',
    {
      issuer: str('Issuer of the tokens.', { maxLength: 2048, pattern: '^https?://' }),
      audience: str('Audience that the token must name.', { minLength: 1, maxLength: 1024 }),
      resource: opt(str('URL under which clients reach this server.', URL_LIMITS)),
      clientId: opt(str('Client id for introspection.', { maxLength: 1024 })),
      clientSecretEnv: opt(rejectedString(UNSUPPORTED['config.incomingAuth.oidc.clientSecretEnv'])),
      jwksUrl: opt(str('URL of the signing keys (JWKS).', URL_LIMITS)),
      introspectionUrl: opt(str('URL of the token introspection endpoint, for opaque tokens.', URL_LIMITS)),
      scopes: opt(
        list('Scopes in the metadata.', str('A scope.', { minLength: 1, maxLength: 256, pattern: '^[^\\s]+$' }), { maxItems: 64 }),
      ),
      protectedResourceAllowPrivateIp: opt(bool('Whether the issuer may be at a private address.')),
      jwksAllowPrivateIp: opt(bool('Whether the keys may be at a private address.')),
      insecureAllowHttp: opt(bool('Whether the issuer may be reached without TLS. For trials only.')),
      caBundlePath: opt(str('File in the pod with CA certificates.', { maxLength: 4096 })),
    },
    {
      rules: ['issuer', 'jwksUrl'].map((field) => ({
        rule: `!has(self.${field}) || self.${field}.startsWith('https://') || (has(self.insecureAllowHttp) && self.insecureAllowHttp)`,
        message: `${field} must begin with https:// (or, for trials, set insecureAllowHttp to true)`,
        fieldPath: `.${field}`,
      })),
    },
  )

const fileAuthz = () =>
  obj(
    'Authorization policies.',
    {
      type: oneOf('cedar for policies, none for no authorization.', ['cedar', 'none']),
      policies: opt(list('Cedar policies.', str('One Cedar policy.', { minLength: 1, maxLength: 65536 }), { minItems: 1, maxItems: 1000 })),
      entitiesJson: opt(str('Cedar entities as a JSON array.')),
      primaryUpstreamProvider: opt(str('Upstream whose token the policies see.', { minLength: 1, maxLength: 63 })),
      groupClaimName: opt(str('Claim that lists the groups.', { maxLength: 253 })),
      roleClaimName: opt(str('Claim that lists the roles.', { maxLength: 253 })),
      groupEntityType: opt(str('Cedar entity type of a group.', { maxLength: 63, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
    },
    {
      rules: [
        ...unionRules('type', { cedar: 'policies' }),
        {
          rule: "self.type == 'cedar' || (!has(self.entitiesJson) && !has(self.primaryUpstreamProvider) && !has(self.groupClaimName) && !has(self.roleClaimName) && !has(self.groupEntityType))",
          message: 'with type none there is nothing else to set',
        },
      ],
    },
  )
