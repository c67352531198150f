import type { CelRule } from '../../schema/cel.ts'
import { bool, DURATION_PATTERN, list, obj, opt, str } from '../../schema/nodes.ts'
import { isTrue, MAX_URL, URL_PATTERN } from './auth-server-urls.ts'

const url = (description: string) => str(description, { minLength: 1, maxLength: MAX_URL, pattern: URL_PATTERN })
const ids = (description: string, minItems = 0) =>
  list(description, str('An id.', { minLength: 1, maxLength: 256 }), { maxItems: 50, ...(minItems > 0 && { minItems }) })

const jwtBearerGrant = () =>
  obj('Accepts assertions of this issuer as a grant (RFC 7523).', {
    maxAssertionAge: str('Maximum age of an assertion.', {
      maxLength: 64,
      pattern: DURATION_PATTERN,
      rules: [{ rule: "duration(self) > duration('0s')", message: 'maxAssertionAge must be more than 0s' }],
    }),
    acceptedAudiences: opt(
      list('Audiences that an assertion may name; the issuer of this server if not given.', url('A URL.'), { maxItems: 50 }),
    ),
    subjectBindings: list(
      'The subjects that assertions may name, and the resources that each may ask for.',
      obj('One subject and its resources.', {
        subject: str('The subject; no wildcard.', { minLength: 1, maxLength: 256, pattern: '^[^*]+$' }),
        allowedResources: list('Resources it may ask for.', url('A URL.'), { minItems: 1, maxItems: 50 }),
      }),
      {
        minItems: 1,
        maxItems: 50,
        rules: [
          {
            rule: 'self.all(a, self.exists_one(b, a.subject == b.subject))',
            message: 'each subject may be listed only once: join its allowedResources',
          },
        ],
      },
    ),
  })

const anyDelegationField = [
  'has(self.allowedActors)',
  'has(self.actorClaim)',
  'has(self.actorMatcher)',
  'has(self.allowedDelegateClients)',
  isTrue('self.allowMayAct'),
  '!has(self.jwtBearerGrant)',
].join(' || ')

const rules: CelRule[] = [
  {
    rule: `${isTrue('self.insecureAllowHTTP')} || (self.issuerUrl.startsWith('https://') && (!has(self.jwksUrl) || self.jwksUrl.startsWith('https://')))`,
    message: 'issuerUrl and jwksUrl must begin with https:// unless insecureAllowHTTP is true',
  },
  {
    rule: `!${isTrue('self.allowPrivateIPs')} || has(self.jwksUrl)`,
    message: 'allowPrivateIPs needs jwksUrl, so that no discovery leads to a private address',
  },
  {
    rule: "!has(self.allowedDelegateClients) || !('*' in self.allowedDelegateClients) || size(self.allowedDelegateClients) == 1",
    message: "'*' in allowedDelegateClients must stand alone",
  },
  {
    rule: `!has(self.allowedDelegateClients) || !('*' in self.allowedDelegateClients) || !${isTrue('self.allowMayAct')}`,
    message: "'*' in allowedDelegateClients must not be used with allowMayAct: name the clients",
  },
  {
    rule: `has(self.allowedDelegateClients) || !(${anyDelegationField})`,
    message: 'allowedDelegateClients must name the clients that may exchange tokens of this issuer, unless only jwtBearerGrant is used',
  },
  {
    rule: `has(self.expectedAudience) || !(${anyDelegationField})`,
    message: 'expectedAudience must be set unless only jwtBearerGrant is used',
  },
]

/** Another issuer whose tokens the embedded authorization server takes in exchange. */
export const trustedIssuer = () =>
  obj(
    'An issuer whose tokens may be exchanged here.',
    {
      issuerUrl: url('The iss claim of its tokens.'),
      jwksUrl: opt(url('URL of its signing keys (JWKS). Discovered by default.')),
      expectedAudience: opt(str('The aud claim that its tokens must have.', { minLength: 1, maxLength: MAX_URL })),
      allowedDelegateClients: opt(ids("Clients that may exchange its tokens; '*' alone for all.", 1)),
      allowedActors: opt(ids('Accepted values of actorClaim.')),
      actorClaim: opt(str('Claim that names the actor; azp if not given.', { maxLength: 64 })),
      actorMatcher: opt(str('CEL expression over the claims that allows the actor.', { maxLength: 4096 })),
      allowMayAct: opt(bool('Whether a may_act claim counts as consent.', { default: false })),
      jwtBearerGrant: opt(jwtBearerGrant()),
      allowPrivateIPs: opt(bool('Whether jwksUrl may have a private address.')),
      insecureAllowHTTP: opt(bool('Whether the URLs may be plain HTTP. For tests only.')),
    },
    { rules },
  )
