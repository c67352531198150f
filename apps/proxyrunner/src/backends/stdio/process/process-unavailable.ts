import type { Rejection } from '@thv/mcp/wire-errors'
import type { HandshakeOutcome } from './handshake.ts'
import type { ProcessLink } from './process-connection.ts'

export type Refused = Extract<HandshakeOutcome, { outcome: 'refused' }>

/** Why there is no process to be had now. `refused` if there was one, and it does not speak the era. */
export interface Unready {
  readonly rejection: Rejection
  readonly refused?: Refused
}

export function isUnready(readiness: ProcessLink | Unready): readiness is Unready {
  return 'rejection' in readiness
}
