import type { ObjectRef } from './object-ref.ts'
import { refText } from './object-ref.ts'

/** Why something is not exported, or not as its author may expect. */
export const ExportReason = {
  RouteNotAccepted: 'RouteNotAccepted',
  BackendRefsNotResolved: 'BackendRefsNotResolved',
  ReferenceNotPermitted: 'ReferenceNotPermitted',
  GatewayNotFound: 'GatewayNotFound',
  GatewayNotReadable: 'GatewayNotReadable',
  WaitingForGatewayAddress: 'WaitingForGatewayAddress',
  UnsupportedGatewayAddress: 'UnsupportedGatewayAddress',
  NoMatchingListener: 'NoMatchingListener',
  UnsupportedPathMatch: 'UnsupportedPathMatch',
  NoMCPBackend: 'NoMCPBackend',
  BypassesProxy: 'BypassesProxy',
  InvalidRegistryURL: 'InvalidRegistryURL',
  MissingRegistryURL: 'MissingRegistryURL',
  MissingDescription: 'MissingDescription',
  InvalidServerName: 'InvalidServerName',
  DuplicateServerName: 'DuplicateServerName',
  InvalidClaims: 'InvalidClaims',
  InvalidEntry: 'InvalidEntry',
  ConflictingConfiguration: 'ConflictingConfiguration',
  PathNotServed: 'PathNotServed',
  RestrictedMatch: 'RestrictedMatch',
  WildcardHostname: 'WildcardHostname',
  InvalidAnnotation: 'InvalidAnnotation',
  ClaimsIgnored: 'ClaimsIgnored',
  InsecureURL: 'InsecureURL',
  SharedRule: 'SharedRule',
  DescriptionTruncated: 'DescriptionTruncated',
} as const
export type ExportReason = (typeof ExportReason)[keyof typeof ExportReason]

const INFO: ReadonlySet<ExportReason> = new Set([ExportReason.InsecureURL, ExportReason.SharedRule, ExportReason.DescriptionTruncated])

export interface ExportWarning {
  readonly reason: ExportReason
  readonly level: 'warning' | 'info'
  /** The object whose author can act on it. */
  readonly object: ObjectRef
  readonly message: string
}

export function exportWarning(reason: ExportReason, object: ObjectRef, message: string): ExportWarning {
  return { reason, level: INFO.has(reason) ? 'info' : 'warning', object, message }
}

export function warningText({ reason, object, message }: ExportWarning): string {
  return `${reason}: ${refText(object)}: ${message}`
}
