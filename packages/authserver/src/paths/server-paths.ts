import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'

/** Paths of the server, below its base. */
export const PATHS = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  revoke: '/oauth/revoke',
  introspect: '/oauth/introspect',
  callback: '/oauth/callback',
  login: '/oauth/login/',
  connect: '/oauth/connect/',
  account: '/oauth/account',
  jwks: '/.well-known/jwks.json',
} as const

/** The origin and path that users see. */
export function loginBase({ issuer, authorization_endpoint_base_url: base }: AuthServerConfig): string {
  return base ?? issuer
}
