import { WorkloadCondition, WorkloadReason } from '../../shared/workload-conditions.ts'

/** Never set: owner references clean up. Named so that it can be taken off objects that another operator left behind. */
export const MCP_SERVER_FINALIZER = 'mcpserver.toolhive.stacklok.dev/finalizer'

export const MCPServerAnnotation = {
  /** RFC 3339 time; a newer value restarts the workload. */
  restartedAt: 'mcpserver.toolhive.stacklok.dev/restarted-at',
  /** `rolling` or `immediate`. */
  restartStrategy: 'mcpserver.toolhive.stacklok.dev/restart-strategy',
  /** Written by the operator: the last `restartedAt` that it honoured. */
  lastProcessedRestart: 'mcpserver.toolhive.stacklok.dev/last-processed-restart',
} as const

export const MCPServerPhase = {
  Pending: 'Pending',
  Running: 'Running',
  Failed: 'Failed',
  Terminating: 'Terminating',
  Stopped: 'Stopped',
} as const

export const MCPServerCondition = {
  ...WorkloadCondition,
  /** True: fewer proxy pods run than asked for, because each proxy of a stdio server needs a server pod of its own. */
  StdioReplicaCapped: 'StdioReplicaCapped',
  RateLimitConfigValid: 'RateLimitConfigValid',
  ImageValidated: 'ImageValidated',
  /** True: a part of the permission profile cannot be said in a NetworkPolicy. */
  PermissionProfilePartial: 'PermissionProfilePartial',
} as const

export const MCPServerReason = {
  ...WorkloadReason,
  Ready: 'Ready',

  StdioTransportCapAt1: 'StdioTransportCapAt1',
  StdioCappedAtServerPods: 'StdioCappedAtServerPods',
  StdioReplicaCapNotActive: 'StdioReplicaCapNotActive',

  RateLimitConfigValid: 'RateLimitConfigValid',
  RateLimitNotApplicable: 'RateLimitNotApplicable',
  PerUserRequiresAuth: 'PerUserRequiresAuth',
  /** Limits in memory are not shared, so with several pods each would have its own. */
  SharedStoreRequired: 'SharedStoreRequired',

  ImageValidationSuccess: 'ImageValidationSuccess',
  ImageValidationSkipped: 'ImageValidationSkipped',
  ImageValidationFailed: 'ImageValidationFailed',
  ImageValidationError: 'ImageValidationError',

  PermissionProfileNotFound: 'PermissionProfileNotFound',
  PermissionProfileInvalid: 'PermissionProfileInvalid',
  /** Hosts are named together with ports: the ports are open to all hosts. */
  HostRulesNotEnforced: 'HostRulesNotEnforced',
  /** Hosts are named without ports: nothing is open to them. */
  HostRulesNotExpressible: 'HostRulesNotExpressible',
  /** Clients reach the server through its proxy only, whatever `inbound` says. */
  InboundRulesNotApplied: 'InboundRulesNotApplied',
  /** `read` and `write` mount nothing. */
  MountRulesNotApplied: 'MountRulesNotApplied',
} as const
