import { errorMessage } from '@thv/kernel/errors'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import { withoutLinks } from '@thv/telemetry/redact'

/** A failure at a backend for the log. What the backend itself said may hold a link for the user, which no log may; our own words name addresses. */
export function failureText(error: unknown): string {
  return isAnswer(error) ? withoutLinks(errorMessage(error)) : errorMessage(error)
}

function isAnswer(error: unknown): boolean {
  let cause = error
  for (let depth = 0; cause instanceof Error && depth < MAX_DEPTH; depth++) {
    if (cause instanceof McpErrorResponse) return true
    cause = cause.cause
  }
  return false
}

const MAX_DEPTH = 16
