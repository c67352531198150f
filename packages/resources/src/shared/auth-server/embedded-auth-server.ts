import type { Static } from 'typebox'
import type { CelRule } from '../../schema/cel.ts'
import { bool, DURATION_PATTERN, duration, int64, list, obj, opt, str } from '../../schema/nodes.ts'
import { secretKeyRef } from '../references.ts'
import { authServerStorage, type CanonicalAuthServerStorage, normaliseAuthServerStorage } from './auth-server-storage.ts'
import { trustedIssuer } from './auth-server-trusted-issuer.ts'
import { normaliseUpstreamProvider, providerName, upstreamProvider } from './auth-server-upstream.ts'
import { httpsOrLoopback, ISSUER_PATTERN, isLoopback, isTrue, MAX_URL } from './auth-server-urls.ts'

const SCOPE_PATTERN = '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$'

const lifespan = (description: string, limits: { least: string; most: string }) =>
  str(description, {
    maxLength: 64,
    pattern: DURATION_PATTERN,
    rules: [
      {
        rule: `duration(self) >= duration('${limits.least}') && duration(self) <= duration('${limits.most}')`,
        message: `must be between ${limits.least} and ${limits.most}`,
      },
    ],
  })

const delegateClient = () =>
  obj('A fixed client that may exchange tokens of users.', {
    clientId: str('Id of the client.', { minLength: 1, maxLength: 256 }),
    clientSecretRef: secretKeyRef('Secret of the client, at least 32 characters.'),
    scopes: list('Scopes that the client may request.', str('A scope.', { minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 10 }),
    audiences: list('Audiences that the client may request.', str('An audience.', { minLength: 1, maxLength: 2048 }), {
      minItems: 1,
      maxItems: 10,
    }),
  })

const unique = (field: string): CelRule => ({
  rule: `self.all(a, self.exists_one(b, a.${field} == b.${field}))`,
  message: `each ${field} may be listed only once`,
})

const rules: CelRule[] = [
  {
    rule: `${isTrue('self.insecureAllowHTTP')} || (${httpsOrLoopback('self.issuer')} && (!has(self.authorizationEndpointBaseUrl) || ${httpsOrLoopback('self.authorizationEndpointBaseUrl')}))`,
    message:
      'issuer and authorizationEndpointBaseUrl must begin with https:// (http:// only for localhost) unless insecureAllowHTTP is true',
  },
  {
    rule: `!${isTrue('self.allowConfidentialClientRegistration')} || !${isTrue('self.insecureAllowHTTP')}`,
    message:
      'allowConfidentialClientRegistration must not be used with insecureAllowHTTP, because client secrets would travel in the clear',
  },
  {
    rule: `!${isTrue('self.allowConfidentialClientRegistration')} || self.issuer.startsWith('https://') || ${isTrue('self.insecureAllowConfidentialOverLoopbackHTTP')}`,
    message:
      'allowConfidentialClientRegistration needs an https:// issuer; for a test on localhost set insecureAllowConfidentialOverLoopbackHTTP',
  },
  {
    rule: `!has(self.forceConfidentialRedirectUris) || size(self.forceConfidentialRedirectUris) == 0 || ${isTrue('self.allowConfidentialClientRegistration')}`,
    message: 'forceConfidentialRedirectUris needs allowConfidentialClientRegistration: true',
  },
  {
    rule: "!has(self.delegateClients) || size(self.delegateClients) == 0 || self.issuer.startsWith('https://')",
    message: 'delegateClients need an issuer that begins with https://, because their secrets are sent to it',
  },
  {
    rule: '!has(self.primaryUpstreamProvider) || self.upstreamProviders.exists(p, p.name == self.primaryUpstreamProvider)',
    message: 'primaryUpstreamProvider must be the name of one of upstreamProviders',
    fieldPath: '.primaryUpstreamProvider',
  },
  {
    rule: "size(self.upstreamProviders) == 0 || !has(self.upstreamProviders[0].loginPolicy) || self.upstreamProviders[0].loginPolicy == 'required'",
    message: 'loginPolicy of the first provider must be required, because that provider says who the user is',
    fieldPath: '.upstreamProviders',
  },
]

/** The authorization server inside a proxy: MCPExternalAuthConfig.spec.embeddedAuthServer, VirtualMCPServer.spec.authServerConfig. */
export const embeddedAuthServer = (description: string) =>
  obj(
    description,
    {
      issuer: str('Issuer of the tokens, as clients reach it.', { maxLength: MAX_URL, pattern: ISSUER_PATTERN }),
      authorizationEndpointBaseUrl: opt(
        str('Base URL of the login pages, if it is not the issuer.', { maxLength: MAX_URL, pattern: ISSUER_PATTERN }),
      ),
      upstreamProviders: list('Identity providers for users, in order.', upstreamProvider(), {
        minItems: 1,
        maxItems: 16,
        merge: ['name'],
      }),
      primaryUpstreamProvider: opt(providerName('Provider whose claims policies see, instead of those of the tokens of this server.')),
      signingKeySecretRefs: opt(
        list('PEM keys: the first signs, the others verify. Without any, the operator makes and rotates them.', secretKeyRef('A key.'), {
          maxItems: 5,
        }),
      ),
      hmacSecretRefs: opt(
        list(
          'Secrets of at least 32 bytes for client ids, cookies and stored tokens: the first is current. Without any, the operator makes and rotates them.',
          secretKeyRef('A secret.'),
          {
            maxItems: 10,
          },
        ),
      ),
      tokenLifespans: opt(
        obj('Lifetimes of tokens.', {
          accessTokenLifespan: opt(lifespan('Lifetime of access tokens; 1h if not given.', { least: '1m', most: '24h' })),
          refreshTokenLifespan: opt(lifespan('Lifetime of refresh tokens; 168h if not given.', { least: '1h', most: '720h' })),
          authCodeLifespan: opt(lifespan('Lifetime of authorization codes; 10m if not given.', { least: '30s', most: '10m' })),
        }),
      ),
      storage: opt(authServerStorage()),
      baselineClientScopes: opt(
        list('Scopes that every registered client gets.', str('A scope.', { minLength: 1, maxLength: 256, pattern: SCOPE_PATTERN }), {
          maxItems: 10,
        }),
      ),
      cimd: opt(
        obj('Clients whose id is the URL of their metadata document.', {
          enabled: opt(bool('Whether such clients are accepted.', { default: false })),
          cacheMaxSize: opt(int64('Documents to keep; 256 if not given.', { minimum: 1 })),
          cacheFallbackTtl: opt(duration('How long to keep one; 5m if not given.')),
        }),
      ),
      allowConfidentialClientRegistration: opt(bool('Whether clients may register with a secret.', { default: false })),
      forceConfidentialRedirectUris: opt(
        list(
          'Clients with one of these redirect URIs must have a secret.',
          str('An https URL.', {
            maxLength: MAX_URL,
            pattern: '^https://[^\\s?#]+$',
            rules: [{ rule: `!${isLoopback('self')}`, message: 'must not lead to localhost, where no secret can be kept' }],
          }),
          { maxItems: 10 },
        ),
      ),
      delegateClients: opt(
        list('Fixed clients that may exchange tokens of users.', delegateClient(), { maxItems: 10, rules: [unique('clientId')] }),
      ),
      trustedIssuers: opt(
        list('Other issuers whose tokens may be exchanged here.', trustedIssuer(), { maxItems: 20, rules: [unique('issuerUrl')] }),
      ),
      disableUpstreamTokenInjection: opt(
        bool(
          'Whether the token of the caller is removed before a request goes to the MCP server, instead of being replaced by the token of the upstream provider.',
          { default: false },
        ),
      ),
      insecureAllowHTTP: opt(bool('Whether the issuer may be plain HTTP beyond localhost. For tests only.', { default: false })),
      insecureAllowConfidentialOverLoopbackHTTP: opt(
        bool('Whether clients with a secret may use plain HTTP on localhost. For tests only.', { default: false }),
      ),
    },
    { rules },
  )

export type EmbeddedAuthServer = Static<ReturnType<typeof embeddedAuthServer>>

type Filled<T, K extends keyof T> = Omit<T, K> & { [P in K]-?: Exclude<T[P], undefined> }
type Member<K extends keyof EmbeddedAuthServer> = NonNullable<EmbeddedAuthServer[K]>

type FlagName =
  | 'allowConfidentialClientRegistration'
  | 'disableUpstreamTokenInjection'
  | 'insecureAllowHTTP'
  | 'insecureAllowConfidentialOverLoopbackHTTP'
type ListName = 'signingKeySecretRefs' | 'hmacSecretRefs' | 'baselineClientScopes' | 'forceConfidentialRedirectUris' | 'delegateClients'

/** Flags and lists are always there. Lifespans and cache sizes stay absent: the server that uses them knows their defaults. */
export type CanonicalEmbeddedAuthServer = Filled<Omit<EmbeddedAuthServer, 'storage' | 'cimd' | 'trustedIssuers'>, FlagName | ListName> & {
  storage: CanonicalAuthServerStorage
  cimd: Filled<Member<'cimd'>, 'enabled'>
  trustedIssuers: Filled<Member<'trustedIssuers'>[number], 'allowMayAct'>[]
}

export function normaliseEmbeddedAuthServer(value: EmbeddedAuthServer): CanonicalEmbeddedAuthServer {
  return {
    ...value,
    upstreamProviders: value.upstreamProviders.map(normaliseUpstreamProvider),
    storage: normaliseAuthServerStorage(value.storage),
    cimd: { ...value.cimd, enabled: value.cimd?.enabled ?? false },
    trustedIssuers: (value.trustedIssuers ?? []).map((issuer) => ({ ...issuer, allowMayAct: issuer.allowMayAct ?? false })),
    signingKeySecretRefs: value.signingKeySecretRefs ?? [],
    hmacSecretRefs: value.hmacSecretRefs ?? [],
    baselineClientScopes: value.baselineClientScopes ?? [],
    forceConfidentialRedirectUris: value.forceConfidentialRedirectUris ?? [],
    delegateClients: value.delegateClients ?? [],
    allowConfidentialClientRegistration: value.allowConfidentialClientRegistration ?? false,
    disableUpstreamTokenInjection: value.disableUpstreamTokenInjection ?? false,
    insecureAllowHTTP: value.insecureAllowHTTP ?? false,
    insecureAllowConfidentialOverLoopbackHTTP: value.insecureAllowConfidentialOverLoopbackHTTP ?? false,
  }
}
