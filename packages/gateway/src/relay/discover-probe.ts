import { headerText } from '@thv/http/header-map'
import { isThvError } from '@thv/kernel/errors'
import { META, stampRequest } from '@thv/mcp/envelope'
import type { FinalVerdict } from '@thv/mcp/era-cache'
import { HEADERS } from '@thv/mcp/header-names'
import { isErrorResponse, isObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { expectedHeaders } from '@thv/mcp/modern-headers'
import { type ProbeOutcome, verdictOf } from '@thv/mcp/probe'
import { MODERN_VERSION, NEWEST_LEGACY_VERSION } from '@thv/mcp/versions'
import type { BackendAnswer } from './ask.ts'
import type { BackendClient } from './backend-client.ts'

export interface Discovery {
  /** Undefined: the backend did not answer at all. */
  readonly status: number | undefined
  readonly verdict: FinalVerdict
  /** The versions that the backend lists, if it does. */
  readonly versions: readonly string[] | undefined
  /** It answered, and nothing in the answer is MCP. Some legacy servers do so too: see `speaksLegacy`. */
  readonly isSuspect: boolean
  /** Code of the error, where there is no status. */
  readonly failure: string | undefined
}

export interface DiscoverOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Asks the backend which revisions it speaks, with `server/discover`: no server does anything because of it, whichever revision it
 * speaks. Should one begin a session all the same, that is ended.
 */
export async function discover(backend: BackendClient, options: DiscoverOptions): Promise<Discovery> {
  let last = await send(backend, options)
  let verdict = verdictOf(last.outcome)
  if (verdict.verdict === 'retry') {
    last = await send(backend, options)
    verdict = verdictOf(last.outcome, true)
  }
  if (verdict.verdict === 'retry') throw new TypeError('a second probe is final')
  const { answer, failure } = last
  const isSuspect = answer !== undefined && answer.response === undefined && verdict.verdict === 'legacy'
  return { status: answer?.status, verdict, versions: answer && versionsOf(answer), isSuspect, failure }
}

/** Whether the backend answers `initialize` as an MCP server, or so that nothing can be said. A session that it begins is ended. */
export async function speaksLegacy(backend: BackendClient, options: DiscoverOptions): Promise<boolean> {
  const id = 'thv-initialize'
  const params = { protocolVersion: NEWEST_LEGACY_VERSION, capabilities: {}, clientInfo: CLIENT }
  try {
    const answer = await backend.ask(await backend.ownHop(), {
      method: 'POST',
      path: backend.ownPath,
      set: {},
      isOwn: true,
      body: JSON.stringify({ jsonrpc: '2.0', id, method: METHODS.initialize, params }),
      id,
      ...options,
    })
    await endStraySession(backend, answer, options)
    return answer.response !== undefined || !SAYS_NO.has(answer.status)
  } catch (error) {
    if (options.signal.aborted || !isThvError(error)) throw error
    return true
  }
}

/** Answers of HTTP servers that know nothing of MCP: a page for everything, no such path, no such method. */
const SAYS_NO: ReadonlySet<number> = new Set([200, 404, 405, 501])

interface Sent {
  readonly outcome: ProbeOutcome
  readonly answer: BackendAnswer | undefined
  readonly failure: string | undefined
}

async function send(backend: BackendClient, { timeoutMs, signal }: DiscoverOptions): Promise<Sent> {
  const message = stampRequest({ jsonrpc: '2.0', id: 'thv-discover', method: METHODS.discover }, STAMP)
  const { id } = message
  try {
    const answer = await backend.ask(await backend.ownHop(), {
      method: 'POST',
      path: backend.ownPath,
      set: expectedHeaders(message),
      isOwn: true,
      body: JSON.stringify(message),
      id,
      timeoutMs,
      signal,
    })
    await endStraySession(backend, answer, { timeoutMs, signal })
    return { outcome: { kind: 'http', status: answer.status, body: answer.response }, answer, failure: undefined }
  } catch (error) {
    if (signal.aborted || !isThvError(error)) throw error
    return { outcome: { kind: 'transport_failure' }, answer: undefined, failure: error.code }
  }
}

async function endStraySession(backend: BackendClient, answer: BackendAnswer, options: DiscoverOptions): Promise<void> {
  const sessionId = headerText(answer.headers[HEADERS.sessionId])
  if (sessionId === undefined) return
  const set = { [HEADERS.sessionId]: sessionId }
  await backend.ask(await backend.ownHop(), { method: 'DELETE', path: backend.ownPath, set, isOwn: true, ...options })
}

function versionsOf({ response }: BackendAnswer): readonly string[] | undefined {
  if (response === undefined) return undefined
  const { message } = response
  const holder = isErrorResponse(message) ? message.error.data : message.result
  const listed = isObject(holder) ? (holder['supportedVersions'] ?? holder['supported']) : undefined
  return Array.isArray(listed) && listed.every((version) => typeof version === 'string') ? listed : undefined
}

const CLIENT = { name: 'thv-proxyrunner', version: '0.1.0' }

const STAMP = {
  [META.protocolVersion]: MODERN_VERSION,
  [META.clientCapabilities]: {},
  [META.clientInfo]: CLIENT,
}
