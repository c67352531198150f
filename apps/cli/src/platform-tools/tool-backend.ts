import type { Backend, BackendStatus } from '@thv/gateway/backend'
import { acceptedForms } from '@thv/gateway/response/accepted-forms'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import { sendBytes, sendEmpty, sendMethodNotAllowed } from '@thv/http/server/respond'
import { stampResult } from '@thv/mcp/envelope'
import { isObject, type JsonObject, resultResponse, serialise } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { messageFrame } from '@thv/mcp/sse-encoder'
import { negotiateVersion, SERVED_VERSIONS } from '@thv/mcp/versions'
import { isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { MessageContext, RequestContext } from '@thv/middleware/pipeline/request-context'

/** A tool of a server in this process. */
export interface OwnTool {
  /** As `tools/list` shows it. */
  readonly item: JsonObject & { readonly name: string }
  /** Returns the structured content. An error becomes a result with `isError`, so its message must be fit for clients. */
  call(args: JsonObject, signal: AbortSignal): Promise<JsonObject>
}

export interface ToolBackendOptions {
  readonly serverInfo: { readonly name: string; readonly version: string; readonly title?: string }
  readonly instructions?: string
  readonly tools: readonly OwnTool[]
  /** Time limit of a call. */
  readonly limitMs: number
}

const LIST_TTL_MS = 60_000

/** A fixed set of read-only tools as an MCP server of both eras. It keeps nothing between requests, so it has no sessions. */
export class ToolBackend implements Backend {
  readonly #options: ToolBackendOptions
  readonly #closing = new AbortController()
  #inFlight = 0

  constructor(options: ToolBackendOptions) {
    this.#options = options
  }

  get status(): BackendStatus {
    return { ready: true, message: 'ready', eras: ['legacy', 'modern'], versions: SERVED_VERSIONS, sessions: 0, inFlight: this.#inFlight }
  }

  async post(context: MessageContext): Promise<void> {
    const { outgoing: request, exchange, era } = context
    if (request.kind !== 'request') return sendEmpty(exchange, 202)
    this.#inFlight++
    try {
      const answer = await this.#answer(request, era)
      if (exchange.closed) return
      if (isRejection(answer)) return sendRejection(exchange, answer, request.id)
      const result = era === 'modern' ? stampResult({ resultType: 'complete', ...answer }, this.#options.serverInfo) : answer
      const text = serialise(resultResponse(request.id, result))
      const { json } = acceptedForms(exchange.headers['accept'])
      const body = Buffer.from(json ? text : messageFrame(text))
      sendBytes(exchange, 200, { type: json ? 'application/json' : 'text/event-stream', body, headers: ['Cache-Control', 'no-store'] })
    } finally {
      this.#inFlight--
    }
  }

  /** There are no sessions, so there are no streams of them. */
  async openStream({ exchange }: RequestContext): Promise<void> {
    sendMethodNotAllowed(exchange, 'POST')
  }

  async endSession({ exchange }: RequestContext): Promise<void> {
    sendMethodNotAllowed(exchange, 'POST')
  }

  async withoutSession({ exchange }: RequestContext): Promise<void> {
    sendMethodNotAllowed(exchange, 'POST')
  }

  async drain(): Promise<void> {}

  async close(): Promise<void> {
    this.#closing.abort()
  }

  async #answer({ method, message }: ParsedRequest, era: MessageContext['era']): Promise<JsonObject | Rejection> {
    const { serverInfo, instructions, tools } = this.#options
    const params = message.params ?? {}
    const capabilities = { tools: {} }
    switch (method) {
      case METHODS.initialize:
        if (era === 'modern') break
        return {
          protocolVersion: negotiateVersion(params['protocolVersion']),
          ...{ capabilities, serverInfo, ...(instructions !== undefined && { instructions }) },
        }
      case METHODS.ping:
        if (era === 'modern') break
        return {}
      case METHODS.discover:
        if (era === 'legacy') break
        return { supportedVersions: SERVED_VERSIONS, capabilities, serverInfo, ...(instructions !== undefined && { instructions }) }
      case METHODS.toolsList: {
        const list = { tools: tools.map(({ item }) => item) }
        return era === 'modern' ? { ...list, ttlMs: LIST_TTL_MS, cacheScope: 'public' } : list
      }
      case METHODS.toolsCall:
        return await this.#call(params)
    }
    return reject('method_not_found')
  }

  async #call({ name, arguments: args = {} }: JsonObject): Promise<JsonObject | Rejection> {
    const tool = this.#options.tools.find(({ item }) => item.name === name)
    if (tool === undefined) return reject('invalid_params', { detail: `there is no tool ${JSON.stringify(name)}` })
    if (!isObject(args)) return reject('invalid_params', { detail: 'arguments must be an object' })
    try {
      const signal = AbortSignal.any([AbortSignal.timeout(this.#options.limitMs), this.#closing.signal])
      const structuredContent = await tool.call(args, signal)
      return { content: [{ type: 'text', text: JSON.stringify(structuredContent, null, 2) }], structuredContent }
    } catch (error) {
      return { content: [{ type: 'text', text: (error as Error).message }], isError: true }
    }
  }
}
