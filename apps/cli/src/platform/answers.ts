import { plainCall } from '../local-platform/plain-call.ts'
import { VERSION } from '../text/version.ts'

const ANSWERS_WITHIN_MS = 10_000
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'thv-up', version: VERSION } },
})

/**
 * Whether the server behind a URL answers. After a restart a status may still be that of the last run, so only a real handshake tells.
 * Its session is ended again. A refusal (no credentials, for one) is an answer too; a proxy without its server has none.
 */
export async function answers(url: string, signal?: AbortSignal): Promise<boolean> {
  const limit = () => AbortSignal.any([AbortSignal.timeout(ANSWERS_WITHIN_MS), ...(signal ? [signal] : [])])
  try {
    if (new URL(url).pathname.endsWith('/sse')) return await opens(url, limit())
    const { status, headers } = await plainCall(url, { method: 'POST', headers: HEADERS, body: INITIALIZE, signal: limit(), until: 'end' })
    const session = headers['mcp-session-id']
    if (typeof session === 'string')
      await plainCall(url, { method: 'DELETE', headers: { 'mcp-session-id': session }, signal: limit(), until: 'end' })
    return status < 500
  } catch (error) {
    if (signal?.aborted) throw error
    return false // not listening yet: the caller tries again
  }
}

async function opens(url: string, signal: AbortSignal): Promise<boolean> {
  const { status } = await plainCall(url, { headers: { accept: 'text/event-stream' }, signal, until: 'head' })
  return status < 500
}
