import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { JsonObject, JsonRpcNotification } from '../json-rpc.ts'
import { METHODS } from '../methods.ts'
import { type LegacyVersion, NEWEST_LEGACY_VERSION } from '../versions.ts'
import { type ClientLimits, clientLimits } from './client-limits.ts'
import type { ClientHandler, ClientHandlers, ClientInfo, ClientOptions } from './mcp-client.ts'

/** The options of a client with everything filled in, and the counter of its ids. Shared by all parts of one client. */
export interface ClientContext {
  readonly clientInfo: ClientInfo
  readonly handlers: ClientHandlers
  readonly capabilities: JsonObject
  readonly legacyVersion: LegacyVersion
  readonly clock: Clock
  readonly limits: ClientLimits
  /** Somebody wants to hear what comes without being asked for. */
  readonly hasListeners: boolean
  onNotification(notification: JsonRpcNotification): void
  warn(text: string): void
  /** Never the same again in the life of this client, whatever session it is used in. */
  nextId(): number
}

export function clientContext(options: ClientOptions): ClientContext {
  const { clientInfo, handlers = {}, onNotification, onWarning } = options
  let lastId = 0
  return {
    clientInfo,
    handlers,
    capabilities: options.capabilities ?? capabilitiesFor(handlers),
    legacyVersion: options.legacyVersion ?? NEWEST_LEGACY_VERSION,
    clock: options.clock ?? systemClock,
    limits: clientLimits(options.limits),
    hasListeners: onNotification !== undefined || Object.values(handlers).some((handler) => handler !== undefined),
    onNotification: (notification) => onNotification?.(notification),
    warn: (text) => onWarning?.(text),
    nextId: () => ++lastId,
  }
}

/** The handler for a request of a server, by its method. */
export function handlerFor(method: string, handlers: ClientHandlers): ClientHandler | undefined {
  if (method === METHODS.createMessage) return handlers.sampling
  if (method === METHODS.elicit) return handlers.elicitation
  return method === METHODS.rootsList ? handlers.roots : undefined
}

/** Runs a callback of the user: what it throws must break neither the stream nor the call. */
export function tell<T>(context: ClientContext, callback: ((value: T) => void) | undefined, value: T): void {
  try {
    callback?.(value)
  } catch (error) {
    context.warn(`a callback failed: ${errorMessage(error)}`)
  }
}

function capabilitiesFor({ sampling, elicitation, roots }: ClientHandlers): JsonObject {
  return { ...(sampling && { sampling: {} }), ...(elicitation && { elicitation: {} }), ...(roots && { roots: {} }) }
}
