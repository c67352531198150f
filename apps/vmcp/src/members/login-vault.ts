import type { ProtectedResource } from '@thv/middleware/authenticate/protected-resource'
import type { UpstreamTokens } from '@thv/middleware/credentials/upstream-injection'

/** Tokens that users have at the providers where they logged in to the authorization server of this program. */
export interface LoginVault {
  readonly tokens: UpstreamTokens
  readonly issuer: string
  readonly resource: ProtectedResource | undefined
  /** Providers whose tokens only sessions use in which the user logged in there. */
  readonly onDemand: ReadonlySet<string>
}
