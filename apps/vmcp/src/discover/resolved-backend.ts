import type { AddressPolicy } from '@thv/http/outbound/address-policy'
import type { CaBundle } from '@thv/http/outbound/ca-bundle'
import type { BackendAuthConfig, BackendAuthType, TokenCacheConfig } from '@thv/vmcpconfig/vmcp-config'

/** One MCP server behind the virtual server, with everything that is needed to call it. It may hold secrets: never log one. */
export interface ResolvedBackend {
  readonly name: string
  readonly url: string
  readonly transport: string
  readonly authType: BackendAuthType
  readonly auth: ResolvedAuth
  /** MCPExternalAuthConfig that the authentication comes from. */
  readonly authConfigRef?: string | undefined
  /** Added to the CAs of the system, for this backend only. */
  readonly ca: CaBundle | undefined
  readonly policy: AddressPolicy
  /** Lower-case names. They are forwarded with every request; a fixed credential is among them. */
  readonly headers: Readonly<Record<string, string>>
  /** Silence after which a call is given up. */
  readonly timeoutMs: number
}

/** Credentials that are obtained when a request goes out. */
export interface ResolvedAuth {
  readonly config: BackendAuthConfig
  /** Of the OAuth client. */
  readonly secret: string | undefined
  /** Callers are authenticated: only the token that proved who they are is exchanged. */
  readonly authenticates: boolean
  readonly cache: TokenCacheConfig
  /** Provider of the authorization server whose token the backend gets, or that is exchanged for it. */
  readonly upstream?: { readonly provider: string } | undefined
}
