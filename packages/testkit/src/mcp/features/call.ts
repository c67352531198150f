import type { IncomingHttpHeaders } from 'node:http'
import type { World } from '../state/world.ts'
import type { JsonObject, RpcMessage, RpcResponse } from '../wire/json-rpc.ts'
import type { Era, LogLevel, TransportKind } from '../wire/protocol.ts'

/** The way back to the peer for one request. Each transport has its own. */
export interface Channel {
  /** A message that belongs to the request and goes ahead of its answer. */
  send(message: RpcMessage): void
  /** Legacy HTTP polling: ends the connection but not the stream; elsewhere nothing happens. */
  pause(retryMs: number): void
  /** Fault: something that is no JSON-RPC message. */
  garbage(): void
  /** Fault: begins an answer and cuts the connection in the middle of it. */
  breakOff(): void
}

/** The request as the fixture saw it, for tests of a proxy's forwarding. */
export interface Origin {
  readonly transport: TransportKind
  readonly protocolVersion: string
  readonly session?: string
  readonly headers?: IncomingHttpHeaders
  readonly clientInfo?: unknown
  readonly clientCapabilities: JsonObject
}

export interface InputRequest extends JsonObject {
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list' | 'ping'
  readonly params?: JsonObject
}

export interface AskOptions {
  /** Modern era: keep earlier answers in a signed `requestState`. */
  readonly sealed?: boolean
  /** Legacy HTTP: send the request on the standalone stream, where nothing says to which call it belongs. */
  readonly standalone?: boolean
}

/** One feature request (tool, prompt, resource …), the same for both eras: handlers are written once. */
export interface Call {
  readonly world: World
  readonly era: Era
  readonly params: JsonObject
  readonly args: JsonObject
  readonly origin: Origin
  readonly channel: Channel
  /** Aborts when the peer has cancelled or the fixture stops. */
  readonly signal: AbortSignal
  /** Modern era: this call carries a genuine `requestState`. Always false in the legacy era. */
  readonly resumed: boolean
  /** Sent only if the client asked for messages of this level. */
  log(level: LogLevel, data: unknown): void
  /** Sent only if the client gave a token. */
  progress(progress: number, total: number): void
  /**
   * Asks the client. Legacy: real requests, all at once. Modern: ends the call with `input_required` unless the answers came along, so a
   * handler runs again from its start on each round. Throws {@link MissingCapability} for what the client did not declare.
   */
  ask(requests: Record<string, InputRequest>, options?: AskOptions): Promise<Record<string, JsonObject>>
  /** Legacy era: a message that belongs to no request. The modern one has no such thing: nothing happens. */
  unsolicited(message: RpcMessage): void
}

export interface Tool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly annotations?: JsonObject
  /** Absent: both. */
  readonly era?: Era
  /** Runs as a task for a client that declared the extension; `required` needs one that did. */
  readonly task?: 'optional' | 'required'
  /** Runs inside the request, before a task exists; what it returns joins the arguments. */
  prepare?(call: Call): Promise<JsonObject>
  run(call: Call): JsonObject | Promise<JsonObject>
}

/** Ends a modern call with `input_required`. */
export class InputRequired extends Error {
  readonly result: JsonObject

  constructor(result: JsonObject) {
    super('input required')
    this.result = result
  }
}

/** The client did not declare what the call needs. The eras report it differently. */
export class MissingCapability extends Error {
  readonly required: JsonObject

  constructor(required: JsonObject) {
    super(`Client does not support: ${Object.keys(required).join(', ')}`)
    this.required = required
  }
}

/** Fault: sent instead of the proper answer, as it is. */
export class RawAnswer extends Error {
  readonly response: RpcResponse

  constructor(response: RpcResponse) {
    super('raw answer')
    this.response = response
  }
}
