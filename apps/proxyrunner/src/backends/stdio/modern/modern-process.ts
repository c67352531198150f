import { META, metaOf } from '@thv/mcp/envelope'
import { errorResponse, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest } from '@thv/mcp/parse-body'
import { errorObjectOf, reject } from '@thv/mcp/wire-errors'
import { ownerOf } from '../process/attribution.ts'
import type { ProcessLink } from '../process/process-connection.ts'
import type { ProcessSlot, SlotListener } from '../process/process-slot.ts'
import type { StdioDeps } from '../process/stdio-deps.ts'
import { ListenStream } from './listen-stream.ts'
import type { ModernCall } from './modern-call.ts'
import { ToolAnnotations } from './tool-annotations.ts'

/** A process of the modern era. It has no sessions: all that is kept is who listens. */
export class ModernProcess implements SlotListener {
  readonly annotations: ToolAnnotations
  readonly #deps: StdioDeps
  readonly #listens = new Set<ListenStream>()
  #slot: ProcessSlot | undefined

  constructor(deps: StdioDeps) {
    this.#deps = deps
    this.annotations = new ToolAnnotations(deps.config, deps.clock)
  }

  get slot(): ProcessSlot {
    if (this.#slot === undefined) throw new RangeError('a process must be given its slot first')
    return this.#slot
  }

  set slot(slot: ProcessSlot) {
    this.#slot = slot
  }

  get listens(): number {
    return this.#listens.size
  }

  /** Resolves when the stream is over. */
  async listen(stream: ListenStream, link: ProcessLink): Promise<void> {
    this.#listens.add(stream)
    stream.start(link)
    await stream.done
    this.#listens.delete(stream)
  }

  endListens(): void {
    for (const stream of [...this.#listens]) stream.drain()
  }

  /** A modern server asks in its results; a request is a fault of its own. */
  onRequest(slot: ProcessSlot, { id }: ParsedRequest): void {
    this.#deps.metrics.dropped('request', 'unattributed')
    slot.current?.send(serialise(errorResponse(id, errorObjectOf(reject('method_not_found')))))
  }

  onNotification(slot: ProcessSlot, notification: ParsedNotification): void {
    const { method } = notification
    if (method === NOTIFICATIONS.toolsListChanged) {
      this.annotations.invalidate()
      this.#deps.onToolsChanged()
    }
    if (method === NOTIFICATIONS.message) this.#log(slot, notification)
    // Of `cancelled` there is nothing to tell: it is a second way to say that a subscription is over.
    else if (method !== NOTIFICATIONS.cancelled) this.#published(slot, notification)
  }

  /** Its subscription is found by the id that the runner gave it. */
  #published(slot: ProcessSlot, notification: ParsedNotification): void {
    const subscription = metaOf(notification.message)?.[META.subscriptionId]
    const sink = typeof subscription === 'string' ? slot.current?.sinkOf(subscription) : undefined
    if (!(sink instanceof ListenStream && sink.onNotification(notification))) this.#deps.metrics.dropped('notification', 'unattributed')
  }

  onDown(): void {}

  /** It names no call, so it can only be given to the one there is. */
  #log(slot: ProcessSlot, notification: ParsedNotification): void {
    // Only calls are ever given as owners to a modern process.
    const owners = (slot.current?.owners ?? new Map()) as ReadonlyMap<ModernCall, number>
    const call = ownerOf({ own: undefined, owners, answered: slot.current })
    if (call === undefined) this.#deps.metrics.dropped('log', 'unattributed')
    else if (!call.log(notification)) this.#deps.metrics.dropped('log', 'level')
  }
}
