import type { CelRule } from '../../schema/cel.ts'
import { anyPerUser } from '../../shared/rate-limiting.ts'

const inConfig = (field: string) => `(has(self.config) && has(self.config.${field}))`

const isOidc = `((has(self.incomingAuth) && self.incomingAuth.type == 'oidc') || (${inConfig('incomingAuth')} && self.config.incomingAuth.type == 'oidc'))`

const inlineOidc = '(has(self.incomingAuth) && has(self.incomingAuth.oidcConfig) && has(self.incomingAuth.oidcConfig.inline))'
const inlineAuthz = '(has(self.incomingAuth) && has(self.incomingAuth.authzConfig) && has(self.incomingAuth.authzConfig.inline))'
const primaryOfPolicies = 'self.incomingAuth.authzConfig.inline.primaryUpstreamProvider'

/** Rules across the parts of the spec. That the spellings of the group agree is left to `normalise()`: no rule can see them. */
export const specRules: readonly CelRule[] = [
  {
    rule: `has(self.incomingAuth) || ${inConfig('incomingAuth')}`,
    message: 'incomingAuth must be set, to {type: oidc, oidcConfig: …} or to {type: anonymous}',
    reason: 'FieldValueRequired',
    fieldPath: '.incomingAuth',
  },
  {
    rule: `!has(self.incomingAuth) || !${inConfig('incomingAuth')} || self.incomingAuth.type == self.config.incomingAuth.type`,
    message: 'incomingAuth and config.incomingAuth are two spellings of one field and must not differ: set incomingAuth only',
    fieldPath: '.incomingAuth',
  },
  {
    rule: `!has(self.passthroughHeaders) || !${inConfig('passthroughHeaders')} || self.passthroughHeaders == self.config.passthroughHeaders`,
    message:
      'passthroughHeaders and config.passthroughHeaders are two spellings of one field and must not differ: set passthroughHeaders only',
    fieldPath: '.passthroughHeaders',
  },
  {
    rule: `!has(self.compositeToolRefs) || !${inConfig('compositeToolRefs')} || self.compositeToolRefs.all(a, !self.config.compositeToolRefs.exists(b, a.name == b.name))`,
    message: 'compositeToolRefs and config.compositeToolRefs are joined and must not name the same definition',
    fieldPath: '.compositeToolRefs',
  },
  {
    rule: `!${inConfig('rateLimiting')} || !${anyPerUser('self.config.rateLimiting')} || ${isOidc}`,
    message: 'limits per user need to know the user: set incomingAuth.type to oidc',
    fieldPath: '.config.rateLimiting',
  },
  {
    rule: `!has(self.authServerConfig) || ${isOidc}`,
    message: 'authServerConfig needs incomingAuth of type oidc: who logs in there comes with a token',
    fieldPath: '.authServerConfig',
  },
  {
    rule: `!has(self.authServerConfig) || !${inlineOidc} || self.incomingAuth.oidcConfig.inline.issuer == self.authServerConfig.issuer`,
    message: 'authServerConfig.issuer and incomingAuth.oidcConfig.inline.issuer must be the same: the server accepts its own tokens',
    fieldPath: '.authServerConfig.issuer',
  },
  {
    rule: `!${inlineAuthz} || !has(${primaryOfPolicies}) || (has(self.authServerConfig) && (!has(self.authServerConfig.primaryUpstreamProvider) || self.authServerConfig.primaryUpstreamProvider == ${primaryOfPolicies}) && self.authServerConfig.upstreamProviders.exists(p, p.name == ${primaryOfPolicies}))`,
    message:
      'primaryUpstreamProvider of the policies must name one of authServerConfig.upstreamProviders: set authServerConfig.primaryUpstreamProvider instead',
    fieldPath: '.incomingAuth.authzConfig.inline.primaryUpstreamProvider',
  },
]

export const nameRules: readonly CelRule[] = [
  {
    rule: '!has(self.spec.config) || !has(self.spec.config.name) || self.spec.config.name == self.metadata.name',
    message: 'spec.config.name must be the same as metadata.name: leave it out',
    fieldPath: '.spec.config.name',
  },
]
