/** Largest values of settings of the audit log, for the schemas of resources and for the readers of configuration files. */
export const AUDIT_LIMITS = {
  /** Bytes of one request or response: an event is built in memory and written as one line. */
  dataBytes: 1_048_576,
  /** Actors of a chain of delegations. */
  delegationDepth: 100,
} as const
