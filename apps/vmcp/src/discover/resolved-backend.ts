import type { AddressPolicy } from '@thv/http/outbound/address-policy'
import type { CaBundle } from '@thv/http/outbound/ca-bundle'
import type { BackendAuthType } from '@thv/vmcpconfig/vmcp-config'

/** One MCP server behind the virtual server, with everything that is needed to call it. Its headers may hold secrets: never log one. */
export interface ResolvedBackend {
  readonly name: string
  readonly url: string
  readonly transport: string
  readonly authType: BackendAuthType
  /** Added to the CAs of the system, for this backend only. */
  readonly ca: CaBundle | undefined
  readonly policy: AddressPolicy
  /** Lower-case names. They authenticate, or are forwarded to every request. */
  readonly headers: Readonly<Record<string, string>>
  /** Silence after which a call is given up. */
  readonly timeoutMs: number
}
