import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import type { Exchange } from '@thv/http/server/exchange'
import type { Role } from '../../access/auth-config.ts'

/** The caller and its rights. Built once per token; requests of the same caller may share one. */
export interface Caller {
  /** `anonymous` where authentication is disabled. */
  readonly subject: string
  readonly anonymous: boolean
  readonly roles: ReadonlySet<Role>
  readonly superAdmin: boolean
  /** Claims decide what this caller sees. False for super administrators, without `authz`, and in anonymous mode. */
  readonly gated: boolean
  /** Of the token; `{}` for the anonymous. */
  readonly claims: { readonly [name: string]: unknown }
  /** Callers with the same key see the same: for caches of views. */
  readonly key: string
}

/** Questions of the API about callers. The gates are pure: they look at the caller and at the claims, and never wait. */
export interface Access {
  /** The mode is anonymous: `GET /v0/auth/none` hands out tokens that mean nothing, and `/v1/me` has no subject. */
  readonly anonymous: boolean
  /** In anonymous mode: reading is open to all, writing asks for the token of `auth.writeTokenFile`. */
  readonly writesNeedToken: boolean
  /**
   * Undefined: there is an answer already (401 with a challenge, 503 when no provider could be asked). On public paths, and in
   * anonymous mode, the anonymous caller; but who needs a role has to sign in on public paths too, since only a token gives one.
   * Synchronous whenever it can be: this is the hot path.
   */
  authenticate(exchange: Exchange, needed?: Role): Caller | undefined | Promise<Caller | undefined>
  /** Answers `/.well-known/oauth-protected-resource` and whatever else belongs to signing in. False: not one of its paths. */
  handle(exchange: Exchange): boolean
  /** Anonymous mode, and callers who are not restricted, have every role. */
  hasRole(caller: Caller, role: Role): boolean
  /** Reading: every claim of the thing is held, one of several values is enough; what has no claims is not seen. */
  maySee(caller: Caller, claims: Claims | undefined): boolean
  /** Writing: every value of every claim is held. */
  maySet(caller: Caller, claims: Claims | undefined): boolean
}

const ALL_ROLES: ReadonlySet<Role> = new Set<Role>(['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries'])

const anonymousCaller: Caller = {
  subject: 'anonymous',
  anonymous: true,
  roles: ALL_ROLES,
  superAdmin: false,
  gated: false,
  claims: {},
  key: '',
}

/** Anonymous mode: every gate is open. */
export const openAccess: Access = {
  anonymous: true,
  writesNeedToken: false,
  authenticate: () => anonymousCaller,
  handle: () => false,
  hasRole: () => true,
  maySee: () => true,
  maySet: () => true,
}
