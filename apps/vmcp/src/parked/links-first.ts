import { linkQuestions } from '@thv/mcp/bridge/questions'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { opensLinks } from '@thv/mcp/url-elicitation'
import { errorObjectOf, missingCapability } from '@thv/mcp/wire-errors'
import { LocalRefusal } from '../members/local-refusal.ts'

/**
 * The answer to a modern client where a legacy backend refuses a call until its user has opened links: the links as questions. Nothing is kept, as
 * the call comes again with the answers and is a new one. Undefined for other errors. Throws LocalRefusal for a client that opens no links.
 */
export function linksFirst(error: unknown, capabilities: JsonObject): JsonObject | undefined {
  if (!(error instanceof McpErrorResponse) || error instanceof LocalRefusal) return undefined
  const { rpcCode: code, message, data } = error
  const inputRequests = linkQuestions({ code, message, data })
  if (inputRequests === undefined) return undefined
  if (!opensLinks(capabilities)) throw new LocalRefusal(errorObjectOf(missingCapability({ elicitation: { url: {} } })))
  return { resultType: 'input_required', inputRequests }
}
