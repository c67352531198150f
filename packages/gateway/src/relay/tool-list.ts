import { headerText, type MutableHeaderMap } from '@thv/http/header-map'
import { ThvError } from '@thv/kernel/errors'
import { META, stampRequest } from '@thv/mcp/envelope'
import { HEADERS } from '@thv/mcp/header-names'
import { isObject, type JsonObject, type JsonRpcRequest } from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import { expectedHeaders } from '@thv/mcp/modern-headers'
import { MODERN_VERSION, NEWEST_LEGACY_VERSION } from '@thv/mcp/versions'
import type { Hop } from '@thv/middleware/pipeline/request-context'
import type { ToolsRequest } from '@thv/middleware/pipeline/tool-source'
import { type BackendAnswer, resultOf } from './ask.ts'
import type { BackendClient } from './backend-client.ts'

const MAX_PAGES = 100
const MAX_TOOLS = 10_000

/** All pages of a list of tools; `page` rejects when it cannot be obtained. A list without end is one that cannot be obtained either. */
export async function allTools(page: (cursor: string | undefined) => Promise<JsonObject>): Promise<JsonObject[]> {
  const tools: JsonObject[] = []
  let cursor: string | undefined
  for (let count = 0; count < MAX_PAGES; count++) {
    const { tools: listed, nextCursor } = await page(cursor)
    if (!Array.isArray(listed)) throw new ThvError('backend_protocol', 'the answer to tools/list has no tools')
    tools.push(...listed.filter(isObject))
    if (tools.length > MAX_TOOLS) break
    if (typeof nextCursor !== 'string') return tools
    cursor = nextCursor
  }
  throw new ThvError('message_too_large', `the backend lists more than ${MAX_TOOLS} tools or ${MAX_PAGES} pages`)
}

export interface OwnListOptions {
  readonly request: ToolsRequest
  readonly timeoutMs: number
}

/**
 * The tools of an HTTP backend, by a request of our own: no header of the client but the one that is named reaches the backend, so that no
 * client can choose what others are judged by. It is made in the era of the client, as lists may differ; a legacy one has a session, which is
 * ended afterwards.
 */
export async function toolsOverHttp(backend: BackendClient, { request, timeoutMs }: OwnListOptions): Promise<JsonObject[]> {
  const hop = await backend.ownHop(request.caller)
  const send: Send = (body, set) => {
    const { authorization, signal } = request
    const id = 'id' in body ? { id: body.id } : {}
    return backend.ask(hop, {
      method: 'POST',
      path: backend.ownPath,
      set: { ...(authorization !== undefined && { authorization }), ...set },
      isOwn: true,
      body: JSON.stringify(body),
      ...id,
      timeoutMs,
      signal,
    })
  }
  if (request.era === 'modern') return await allTools((cursor) => modernPage(send, cursor))
  return await inSession({ backend, hop, send, authorization: request.authorization, timeoutMs })
}

type Send = (body: JsonRpcRequest | Notification, set: MutableHeaderMap) => Promise<BackendAnswer>
interface Notification {
  readonly jsonrpc: '2.0'
  readonly method: string
}

async function modernPage(send: Send, cursor: string | undefined): Promise<JsonObject> {
  const message = stampRequest(listRequest(cursor), STAMP)
  return resultIn(await send(message, expectedHeaders(message)))
}

interface Legacy {
  readonly backend: BackendClient
  readonly hop: Hop
  readonly send: Send
  readonly authorization: string | undefined
  readonly timeoutMs: number
}

async function inSession({ backend, hop, send, authorization, timeoutMs }: Legacy): Promise<JsonObject[]> {
  const begun = await send(initializeRequest(), {})
  const version = resultIn(begun)['protocolVersion']
  const sessionId = headerText(begun.headers[HEADERS.sessionId])
  const set = {
    [HEADERS.sessionId]: sessionId,
    [HEADERS.protocolVersion]: typeof version === 'string' ? version : NEWEST_LEGACY_VERSION,
  }
  try {
    await send({ jsonrpc: '2.0', method: NOTIFICATIONS.initialized }, set)
    return await allTools(async (cursor) => resultIn(await send(listRequest(cursor), set)))
  } finally {
    if (sessionId !== undefined) {
      const own = { ...set, ...(authorization !== undefined && { authorization }) }
      // No client waits for it, and it expires by itself where it cannot be ended.
      backend.ask(hop, { method: 'DELETE', path: backend.ownPath, set: own, isOwn: true, timeoutMs }).catch(() => undefined)
    }
  }
}

/** As the proxy introduces itself to a legacy backend. */
export function initializeRequest(): JsonRpcRequest {
  const params = { protocolVersion: NEWEST_LEGACY_VERSION, capabilities: {}, clientInfo: CLIENT }
  return { jsonrpc: '2.0', id: 'thv-initialize', method: METHODS.initialize, params }
}

export function listRequest(cursor: string | undefined): JsonRpcRequest {
  return { jsonrpc: '2.0', id: 'thv-tools', method: METHODS.toolsList, params: cursor === undefined ? {} : { cursor } }
}

function resultIn(answer: BackendAnswer): JsonObject {
  const result = resultOf(answer)
  if (result === undefined) throw new ThvError('backend_protocol', `the backend does not list its tools (status ${answer.status})`)
  return result
}

const CLIENT = { name: 'thv-proxyrunner', version: '0.1.0' }

const STAMP = { [META.protocolVersion]: MODERN_VERSION, [META.clientCapabilities]: {}, [META.clientInfo]: CLIENT }
