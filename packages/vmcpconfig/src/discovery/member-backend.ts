import type { BackendAuthConfig, BackendConfig } from '../vmcp-config.ts'

export interface SecretKey {
  readonly name: string
  readonly key: string
}

/** A variable of the virtual server that holds a value of a Secret. */
export interface SecretVariable {
  readonly name: string
  readonly secret: SecretKey
}

/**
 * One member of a group as the configuration file of a virtual server has it. What the file cannot hold is named: values of Secrets by variables, and
 * the CA bundle by its ConfigMap. The operator turns those into parts of the pod, the virtual server reads them itself.
 */
export interface MemberBackend {
  readonly kind: MemberKindName
  readonly backend: BackendConfig
  /** Undefined: as `outgoingAuth` of the file says. */
  readonly auth: BackendAuthConfig | undefined
  /** MCPExternalAuthConfig that `auth` comes from. */
  readonly authConfigRef: string | undefined
  /** Variable and text of the headers that are forwarded. */
  readonly headers: { readonly variable: string; readonly manifest: string } | undefined
  readonly secrets: readonly SecretVariable[]
  readonly caBundle: { readonly name: string; readonly key: string; readonly optional: boolean } | undefined
  /** Its resource says that it serves. It is a backend before that, too. */
  readonly isReady: boolean
  /** Authentication that was left out, and why. */
  readonly warning: MemberProblem | undefined
}

/** Kinds in the order in which they win a name that several have. */
export const MEMBER_KINDS = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry'] as const
export type MemberKindName = (typeof MEMBER_KINDS)[number]

/** `metadata.workload_type` of a backend. */
export const WORKLOAD_TYPES: Readonly<Record<MemberKindName, string>> = {
  MCPServer: 'mcp_server',
  MCPRemoteProxy: 'remote_proxy',
  MCPServerEntry: 'server_entry',
}

/** Why a member is no backend, or not all that it asks for. */
export interface MemberProblem {
  readonly reason: 'NotReady' | 'Invalid' | 'NameTaken' | 'AuthUnavailable' | 'AudienceDiffers' | 'HeaderNotPassed' | 'Unsupported'
  readonly message: string
}

export type ResolvedMember =
  | { readonly ok: true; readonly member: MemberBackend }
  | { readonly ok: false; readonly kind: MemberKindName; readonly name: string; readonly problem: MemberProblem }
