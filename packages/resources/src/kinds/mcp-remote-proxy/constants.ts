import { WorkloadCondition, WorkloadReason } from '../../shared/workload-conditions.ts'

export const MCPRemoteProxyPhase = { Pending: 'Pending', Ready: 'Ready', Failed: 'Failed', Terminating: 'Terminating' } as const

export const MCPRemoteProxyCondition = {
  ...WorkloadCondition,
  /** Whether the limits can be kept; absent without limits. */
  RateLimitConfigValid: 'RateLimitConfigValid',
} as const

export const MCPRemoteProxyReason = {
  ...WorkloadReason,
  DeploymentReady: 'DeploymentReady',
  DeploymentNotReady: 'DeploymentNotReady',
  NoIncomingAuth: 'NoIncomingAuth',
  RemoteURLInvalid: 'RemoteURLInvalid',
  HeaderSecretNotFound: 'HeaderSecretNotFound',
  RateLimitConfigValid: 'RateLimitConfigValid',
  PerUserRequiresAuth: 'PerUserRequiresAuth',
  SharedStoreRequired: 'SharedStoreRequired',
} as const
