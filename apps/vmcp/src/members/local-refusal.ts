import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { ErrorObject } from '@thv/mcp/json-rpc'
import type { Rejection } from '@thv/mcp/wire-errors'
import { isLoginChallenge } from './login-challenge.ts'

/** An error that this process answers in place of a backend, which was not asked: it says nothing about the backend's health. */
export class LocalRefusal extends McpErrorResponse {
  /** Why there are no credentials. */
  readonly rejection: Rejection | undefined

  constructor(error: ErrorObject, rejection?: Rejection) {
    super(error)
    this.rejection = rejection
  }

  /** The answer that leads the client to the login that is missing. Undefined: a login is not what is missing. */
  get challenge(): Rejection | undefined {
    return this.rejection !== undefined && isLoginChallenge(this.rejection) ? this.rejection : undefined
  }
}
