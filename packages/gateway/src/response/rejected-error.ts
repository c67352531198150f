import type { Rejection } from '@thv/mcp/wire-errors'

/** Thrown by an upstream that knows exactly what to tell the client. Expected: not to be logged as a fault. */
export class RejectedError extends Error {
  readonly rejection: Rejection

  constructor(rejection: Rejection) {
    super(rejection.detail ?? rejection.error)
    this.rejection = rejection
  }
}
