import type { ThvError } from '@thv/kernel/errors'
import type { JsonObject, JsonRpcNotification } from '../json-rpc.ts'
import type { Era } from '../versions.ts'
import type { ClientTransport, ListenFilter, PassOptions, RequestOptions } from './mcp-client.ts'

/** A client's footing on a server in one era: a legacy session, or the knowledge that none is needed. It is replaced when it is lost. */
export interface Engine {
  readonly era: Era
  readonly protocolVersion: string
  readonly transport: ClientTransport
  readonly identity: ServerIdentity
  /** Aborts when this footing is gone, with the reason. */
  readonly over: AbortSignal
  /** Rejects with FootingLost when it must be replaced first. */
  request(method: string, params: JsonObject, options: EngineRequestOptions): Promise<JsonObject>
  /** Undefined: it cannot pass requests on that are written. */
  pass?(method: string, params: JsonObject, options: EnginePassOptions): Promise<JsonObject | string>
  /** Ends the requests that are under way with a cancellation of their own. */
  abandon?(reason: ThvError): void
  notify(method: string, params: JsonObject, signal: AbortSignal): Promise<void>
  /** `signal` is for the opening only. */
  listen(filter: ListenFilter, options: EngineListenOptions): Promise<EngineListening>
  /** Never rejects. */
  close(): Promise<void>
}

export interface ServerIdentity {
  readonly serverInfo: JsonObject | undefined
  readonly capabilities: JsonObject
  readonly instructions: string | undefined
}

/** With a cancellation the signal may be made when it is asked for. */
export type EngineRequestOptions = RequestOptions & { readonly signal: AbortSignal }

export type EnginePassOptions = PassOptions & { readonly signal: AbortSignal }

export interface EngineListenOptions {
  readonly signal: AbortSignal
  onNotification(notification: JsonRpcNotification): void
}

export interface EngineListening {
  readonly honoured: ListenFilter
  /** Resolves when the stream has ended; rejects when the server answered with an error. */
  readonly ended: Promise<void>
  close(): Promise<void>
}
