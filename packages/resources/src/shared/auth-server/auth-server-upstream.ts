import type { Static } from 'typebox'
import { type CelRule, exactlyOne, unionRules } from '../../schema/cel.ts'
import { bool, list, map, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { HEADER_VALUE_PATTERN, namesAreTokens } from '../http-header.ts'
import { secretKeyRef } from '../references.ts'
import { HTTPS_ISSUER_PATTERN, HTTPS_URL_PATTERN, httpsOrLoopback, isTrue, MAX_URL, URL_PATTERN } from './auth-server-urls.ts'

export const PROVIDER_NAME_PATTERN = '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'

const LOGIN_POLICIES = ['required', 'onDemand'] as const

export const providerName = (description: string) => str(description, { minLength: 1, maxLength: 63, pattern: PROVIDER_NAME_PATTERN })

const url = (description: string, pattern = URL_PATTERN) => str(description, { maxLength: MAX_URL, pattern })
const text = (description: string, maxLength = 256) => str(description, { minLength: 1, maxLength })
const names = (description: string) => list(description, text('Name of a field.'), { maxItems: 32 })
const scopes = () => list('Scopes to ask for.', text('A scope.'), { maxItems: 64 })
const redirectUri = () => url('Redirect URI at the provider; defaults to the callback of this server.')

/** The server sets these itself; another value would break or weaken the flow. */
const OWN_PARAMETERS = [
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'nonce',
] as const

const authorizationParams = () =>
  map('Further parameters of the authorization request.', str('The value.', { maxLength: 2048 }), {
    maxProperties: 16,
    rules: [
      {
        rule: `self.all(k, !(k in [${OWN_PARAMETERS.map((name) => `'${name}'`).join(',')}]))`,
        message: `the server sets ${OWN_PARAMETERS.join(', ')} itself: remove them`,
        reason: 'FieldValueForbidden',
      },
    ],
  })

const userInfo = (description: string) =>
  obj(description, {
    endpointUrl: url('URL of the endpoint.'),
    httpMethod: opt(oneOf('HTTP method.', ['GET', 'POST'])),
    additionalHeaders: opt(
      map('Further headers of the request.', str('The value.', { maxLength: 2048, pattern: HEADER_VALUE_PATTERN }), {
        maxProperties: 32,
        rules: [
          namesAreTokens,
          {
            rule: "self.all(k, !(k.lowerAscii() in ['authorization','host','connection','content-length','transfer-encoding']))",
            message: 'Authorization, Host, Connection, Content-Length and Transfer-Encoding are set by the server: remove them',
          },
        ],
      }),
    ),
    fieldMapping: opt(
      obj('Members of the response; the first match wins.', {
        subjectFields: opt(names('Fields with the subject.')),
        nameFields: opt(names('Fields with the name.')),
        emailFields: opt(names('Fields with the e-mail address.')),
      }),
    ),
  })

const oidcConfig = () =>
  obj(
    'A provider with OpenID Connect discovery.',
    {
      issuerUrl: url('Issuer of the provider.', HTTPS_URL_PATTERN),
      clientId: text('Client id at the provider.', 2048),
      clientSecretRef: opt(secretKeyRef('Client secret at the provider.')),
      redirectUri: opt(redirectUri()),
      scopes: opt(scopes()),
      subjectClaim: opt(str('Claim with the subject; sub if not given.', { maxLength: 128, pattern: '^([a-zA-Z_][a-zA-Z0-9_]*)?$' })),
      additionalAuthorizationParams: opt(authorizationParams()),
      userInfoOverride: opt(userInfo('Userinfo endpoint, instead of the discovered one.')),
    },
    {
      rules: [
        {
          rule: `!has(self.userInfoOverride) || ${httpsOrLoopback('self.userInfoOverride.endpointUrl')}`,
          message: 'endpointUrl must begin with https://, because the access token is sent there',
          fieldPath: '.userInfoOverride.endpointUrl',
        },
      ],
    },
  )

const dcrConfig = () =>
  obj(
    'Registers this server as a client at the provider (RFC 7591).',
    {
      discoveryUrl: opt(url('Metadata document that names the registration endpoint.', HTTPS_ISSUER_PATTERN)),
      registrationEndpoint: opt(url('The registration endpoint itself.', HTTPS_ISSUER_PATTERN)),
      initialAccessTokenRef: opt(secretKeyRef('Token that allows the registration.')),
      softwareId: opt(str('The software_id of the registration.', { maxLength: 255 })),
      softwareStatement: opt(str('The software_statement of the registration, a JWT.', { maxLength: 16384 })),
    },
    { rules: [exactlyOne(['discoveryUrl', 'registrationEndpoint'], 'set exactly one of discoveryUrl and registrationEndpoint')] },
  )

const oauth2Config = () =>
  obj(
    'A provider with OAuth 2 only.',
    {
      authorizationEndpoint: url('Authorization endpoint.'),
      tokenEndpoint: url('Token endpoint.'),
      clientId: opt(str('Client id at the provider. Set this or dcrConfig.', { maxLength: 2048 })),
      clientSecretRef: opt(secretKeyRef('Client secret at the provider.')),
      dcrConfig: opt(dcrConfig()),
      redirectUri: opt(redirectUri()),
      scopes: opt(scopes()),
      additionalAuthorizationParams: opt(authorizationParams()),
      userInfo: opt(userInfo('Userinfo endpoint.')),
      identityFromToken: opt(
        obj('Members of the token response with the identity of the user, as dotted paths.', {
          subjectPath: text('Path of the subject.'),
          namePath: opt(text('Path of the name.')),
          emailPath: opt(text('Path of the e-mail address.')),
        }),
      ),
      tokenResponseMapping: opt(
        obj('Members of a nonstandard token response, as dotted paths.', {
          accessTokenPath: text('Path of the access token.'),
          refreshTokenPath: opt(str('Path of the refresh token.', { maxLength: 256 })),
          expiresInPath: opt(str('Path of the lifetime in seconds.', { maxLength: 256 })),
          scopePath: opt(str('Path of the scope.', { maxLength: 256 })),
        }),
      ),
      allowPrivateIPs: opt(bool('Whether the endpoints may have private addresses.')),
      insecureAllowHTTP: opt(bool('Whether the endpoints may be plain HTTP. For tests only.')),
    },
    { rules: oauth2Rules() },
  )

function oauth2Rules(): CelRule[] {
  return [
    {
      rule: "(has(self.clientId) && self.clientId != '') != has(self.dcrConfig)",
      message: 'set exactly one of clientId (not empty) and dcrConfig',
    },
    {
      rule: '!has(self.dcrConfig) || !has(self.clientSecretRef)',
      message: 'clientSecretRef must not be set with dcrConfig, because the registration yields the secret',
    },
    {
      rule: `${isTrue('self.insecureAllowHTTP')} || (${httpsOrLoopback('self.authorizationEndpoint')} && ${httpsOrLoopback('self.tokenEndpoint')} && (!has(self.userInfo) || ${httpsOrLoopback('self.userInfo.endpointUrl')}))`,
      message: 'authorizationEndpoint, tokenEndpoint and userInfo.endpointUrl must begin with https:// unless insecureAllowHTTP is true',
    },
  ]
}

/** An identity provider where users of the embedded authorization server log in. */
export const upstreamProvider = () =>
  obj(
    'An identity provider where users log in.',
    {
      name: providerName('Name of the provider; other fields refer to it.'),
      type: oneOf('Protocol of the provider.', ['oidc', 'oauth2']),
      loginPolicy: opt(
        oneOf('When users log in there: at every login (required, the default), or when a call first needs it (onDemand).', LOGIN_POLICIES),
      ),
      oidcConfig: opt(oidcConfig()),
      oauth2Config: opt(oauth2Config()),
    },
    { rules: unionRules('type', { oidc: 'oidcConfig', oauth2: 'oauth2Config' }) },
  )

export type UpstreamProvider = Static<ReturnType<typeof upstreamProvider>>

/** An empty string says nothing, so it becomes absent. */
export function normaliseUpstreamProvider(value: UpstreamProvider): UpstreamProvider {
  const { oidcConfig, oauth2Config, ...rest } = value
  return {
    ...rest,
    ...(oidcConfig && { oidcConfig: withoutEmpty(oidcConfig, 'subjectClaim') }),
    ...(oauth2Config && { oauth2Config: withoutEmpty(oauth2Config, 'clientId') }),
  }
}

function withoutEmpty<T extends object, K extends keyof T>(object: T, key: K): T | Omit<T, K> {
  if (object[key] !== '') return object
  const { [key]: _empty, ...rest } = object
  return rest
}
