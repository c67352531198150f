import type { Identity } from '@thv/auth/incoming/authenticator'
import type { Caller } from '../api/http/access-port.ts'
import { type AuthzConfig, type Role, roles } from './auth-config.ts'
import { claimsKey, type HeldClaims, matchesRole } from './claim-gates.ts'

const ALL_ROLES: ReadonlySet<Role> = new Set(roles)

/** The caller of a public path. It may read what the path names; it is never an administrator. */
export const publicCaller: Caller = {
  subject: 'anonymous',
  anonymous: true,
  roles: new Set(),
  superAdmin: false,
  gated: false,
  claims: {},
  key: '',
}

export function callerOf({ subject, claims }: Identity, authz: AuthzConfig | undefined): Caller {
  const held = rolesOf(claims, authz)
  const superAdmin = held.has('superAdmin')
  const gated = authz !== undefined && !superAdmin
  return { subject, anonymous: false, roles: held, superAdmin, gated, claims, key: gated ? claimsKey(claims) : '' }
}

/** Without `authz` everybody has every role; who is superAdmin has the others too. */
export function rolesOf(claims: HeldClaims, authz: AuthzConfig | undefined): ReadonlySet<Role> {
  if (authz === undefined) return ALL_ROLES
  const held = roles.filter((role) => authz.roles[role]?.some((wanted) => matchesRole(claims, wanted)))
  return held.includes('superAdmin') ? ALL_ROLES : new Set(held)
}
