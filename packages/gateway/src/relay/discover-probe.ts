import { headerText } from '@thv/http/header-map'
import { isThvError } from '@thv/kernel/errors'
import { META, stampRequest } from '@thv/mcp/envelope'
import type { FinalVerdict } from '@thv/mcp/era-cache'
import { HEADERS } from '@thv/mcp/header-names'
import { isErrorResponse, isObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { expectedHeaders } from '@thv/mcp/modern-headers'
import { type ProbeOutcome, verdictOf } from '@thv/mcp/probe'
import { MODERN_VERSION } from '@thv/mcp/versions'
import type { BackendAnswer } from './ask.ts'
import type { BackendClient } from './backend-client.ts'

export interface Discovery {
  /** Undefined: the backend did not answer at all. */
  readonly status: number | undefined
  readonly verdict: FinalVerdict
  /** What the backend says it serves, if it says so. */
  readonly versions: readonly string[] | undefined
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
  return { status: last.answer?.status, verdict, versions: last.answer && versionsOf(last.answer) }
}

interface Sent {
  readonly outcome: ProbeOutcome
  readonly answer: BackendAnswer | undefined
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
    return { outcome: { kind: 'http', status: answer.status, body: answer.response }, answer }
  } catch (error) {
    if (signal.aborted || !isThvError(error)) throw error
    return { outcome: { kind: 'transport_failure' }, answer: undefined }
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

const STAMP = {
  [META.protocolVersion]: MODERN_VERSION,
  [META.clientCapabilities]: {},
  [META.clientInfo]: { name: 'thv-proxyrunner', version: '0.1.0' },
}
