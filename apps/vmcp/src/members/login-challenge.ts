import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import type { LoginLink, Rejection } from '@thv/mcp/wire-errors'

/** Whether a rejection leads its client to a login: by a header, or by a question. */
export function isLoginChallenge({ headers, result }: Rejection): boolean {
  return headers?.['www-authenticate'] !== undefined || result !== undefined
}

/**
 * One challenge for several logins. Clients that show links get all of them at once; a header leads to the first login, and the next call to
 * the next one.
 */
export function joinChallenges(challenges: readonly Rejection[]): Rejection | undefined {
  const [first, ...others] = challenges
  if (first === undefined || others.length === 0) return first
  // A question that was declined is a header: the client has been asked.
  const byHeader = challenges.find(({ result }) => result === undefined)
  if (byHeader !== undefined) return { ...byHeader, links: distinct(challenges.flatMap(({ links = [] }) => links)) }
  return { ...first, result: { ...first.result, inputRequests: Object.assign({}, ...challenges.map(requestsOf)) } }
}

/** Backends of one provider, and items of a loop, lead to the same login: each has a link of its own, which says the same. */
function distinct(links: readonly LoginLink[]): readonly LoginLink[] {
  return [...new Map(links.map((link) => [link.message, link])).values()]
}

function requestsOf({ result }: Rejection): JsonObject {
  const requests = result?.['inputRequests']
  return isObject(requests) ? requests : {}
}
