import type { Rejection } from '@thv/mcp/wire-errors'
import type { HandshakeOutcome } from './handshake.ts'
import type { ProcessLink } from './process-connection.ts'

export type RejectedError = Extract<HandshakeOutcome, { outcome: 'refused' }>

/** Why no process is available now. `refused` if there was one, and it does not speak the era. */
export interface ProcessUnavailable {
  readonly rejection: Rejection
  readonly refused?: RejectedError
}

export function isUnavailable(readiness: ProcessLink | ProcessUnavailable): readiness is ProcessUnavailable {
  return 'rejection' in readiness
}
