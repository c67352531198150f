import type { Rejection } from '@thv/mcp/wire-errors'

/** Thrown by a backend that knows exactly what to tell the client. Expected, so it is not logged as a fault. */
export class RejectedError extends Error {
  readonly rejection: Rejection

  constructor(rejection: Rejection) {
    super(rejection.detail ?? rejection.error)
    this.rejection = rejection
  }
}
