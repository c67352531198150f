import type { HttpReply } from '@thv/gateway/response/reply'
import { subscriptionMeta } from '@thv/mcp/bridge/projections'
import type { ListenFilter, Listening } from '@thv/mcp/client/mcp-client'
import { isObject, type JsonObject, type JsonRpcNotification, type RequestId, resultResponse, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ListKind } from '../members/member-lists.ts'

/** The wanted notifications of a request, or undefined where it is malformed. */
export function readFilter(params: JsonObject): ListenFilter | undefined {
  const { notifications: wanted } = params
  if (!isObject(wanted)) return undefined
  const uris = wanted['resourceSubscriptions'] ?? []
  if (!Array.isArray(uris) || uris.length > MAX_URIS || !uris.every((uri) => typeof uri === 'string')) return undefined
  return {
    ...(wanted['toolsListChanged'] === true && { toolsListChanged: true }),
    ...(wanted['promptsListChanged'] === true && { promptsListChanged: true }),
    ...(wanted['resourcesListChanged'] === true && { resourcesListChanged: true }),
    ...(uris.length > 0 && { resourceSubscriptions: uris }),
  }
}

const MAX_URIS = 1_000

/** One `subscriptions/listen` of a modern client. */
export class ListenStream {
  readonly #reply: HttpReply
  readonly #id: RequestId
  readonly #filter: ListenFilter
  readonly #listenings: Listening[] = []
  /** Backends that it has subscribed at. */
  backends: ReadonlySet<string> = new Set()
  readonly #done = Promise.withResolvers<void>()
  #isOver = false

  constructor(reply: HttpReply, id: RequestId, filter: ListenFilter) {
    this.#reply = reply
    this.#id = id
    this.#filter = filter
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  /** Must be the first word on the stream. */
  acknowledge(): void {
    const params = { notifications: this.#filter, _meta: subscriptionMeta(this.#id) }
    this.#reply.event(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.subscriptionsAcknowledged, params }))
  }

  changed(kinds: ReadonlySet<ListKind>): void {
    const { toolsListChanged, promptsListChanged, resourcesListChanged } = this.#filter
    if (toolsListChanged && kinds.has('tools')) this.#send(NOTIFICATIONS.toolsListChanged, {})
    if (promptsListChanged && kinds.has('prompts')) this.#send(NOTIFICATIONS.promptsListChanged, {})
    if (resourcesListChanged && (kinds.has('resources') || kinds.has('resourceTemplates')))
      this.#send(NOTIFICATIONS.resourcesListChanged, {})
  }

  /** A subscription at a backend that ends with this stream. */
  add(listening: Listening): void {
    if (this.#isOver) void listening.close()
    else this.#listenings.push(listening)
  }

  updated({ method, params = {} }: JsonRpcNotification): void {
    if (method === NOTIFICATIONS.resourcesUpdated) this.#send(method, params)
  }

  /** This process is about to stop, or the token of the client ends: a result says that the stream was ended on purpose. */
  drain(): void {
    if (this.#isOver) return
    this.#reply.finish(serialise(resultResponse(this.#id, { resultType: 'complete', _meta: subscriptionMeta(this.#id) })))
    this.end()
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const listening of this.#listenings) void listening.close()
    this.#done.resolve()
  }

  #send(method: string, params: JsonObject): void {
    const tagged = { ...params, _meta: subscriptionMeta(this.#id) }
    const key = 'uri' in params ? `${method} ${String(params['uri'])}` : method
    if (!this.#isOver) this.#reply.event(serialise({ jsonrpc: '2.0', method, params: tagged }), { key })
  }
}
