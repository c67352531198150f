import type { IncomingHttpHeaders } from 'node:http'
import { type Call, type Channel, InputRequired } from '../features/call.ts'
import { demandDeclared } from '../features/input-requests.ts'
import type { SealedState } from '../state/state-seal.ts'
import type { World } from '../state/world.ts'
import { INVALID_PARAMS, isObject, type JsonObject, notification, objectOf, RpcError, type RpcRequest } from '../wire/json-rpc.ts'
import { atLeast, isLogLevel, META_LOG_LEVEL, type TransportKind } from '../wire/protocol.ts'
import type { Envelope } from './envelope.ts'

export interface ModernInbound {
  readonly transport: TransportKind
  readonly channel: Channel
  /** Over HTTP; their presence turns on the header checks. */
  readonly headers?: IncomingHttpHeaders
  /** Aborts when the client has cancelled: by disconnecting over HTTP, by a notification over stdio. */
  readonly signal: AbortSignal
}

/** A call of the modern revision: everything it needs came with it. */
export function createModernCall(
  world: World,
  request: RpcRequest,
  { envelope, inbound }: { envelope: Envelope; inbound: ModernInbound },
): Call {
  const params = request.params ?? {}
  const { channel } = inbound
  const threshold = logLevelOf(envelope)
  const token = envelope.meta['progressToken']
  const state = stateOf(world, request)
  const given = responsesOf(params)
  return {
    world,
    era: 'modern',
    params,
    args: objectOf(params['arguments']),
    origin: {
      transport: inbound.transport,
      protocolVersion: envelope.version,
      clientInfo: envelope.clientInfo,
      clientCapabilities: envelope.capabilities,
      ...(inbound.headers ? { headers: inbound.headers } : {}),
    },
    channel,
    signal: AbortSignal.any([inbound.signal, world.signal]),
    resumed: state !== undefined,
    log: (level, data) => {
      if (threshold === undefined || !atLeast(level, threshold)) return
      channel.send(notification('notifications/message', { level, logger: 'fixture', data }))
    },
    progress: (progress, total) => {
      if (token === undefined) return
      channel.send(notification('notifications/progress', { progressToken: token, progress, total }))
    },
    unsolicited: () => {},
    ask: async (requests, options) => {
      demandDeclared(Object.values(requests), envelope.capabilities)
      const known = { ...state?.answers, ...given }
      const keys = Object.keys(requests)
      const open = keys.filter((key) => !Object.hasOwn(known, key))
      if (open.length === 0) return pick(known, keys)
      // Without a state the answers of earlier rounds are lost, so all of it is asked again.
      const asked = options?.sealed ? open : keys
      const requestState = options?.sealed ? { requestState: world.seal.seal({ target: targetOf(request), answers: known }) } : {}
      throw new InputRequired({ inputRequests: pick(requests, asked), ...requestState })
    },
  }
}

function logLevelOf(envelope: Envelope): ReturnType<typeof checkedLevel> | undefined {
  const level = envelope.meta[META_LOG_LEVEL]
  return level === undefined ? undefined : checkedLevel(level)
}

function checkedLevel(level: unknown) {
  if (!isLogLevel(level)) throw new RpcError(INVALID_PARAMS, 'Unknown log level')
  return level
}

function stateOf(world: World, request: RpcRequest): SealedState | undefined {
  const sealed = request.params?.['requestState']
  if (sealed === undefined) return undefined
  if (typeof sealed !== 'string') throw new RpcError(INVALID_PARAMS, 'requestState must be a string')
  return world.seal.open(sealed, targetOf(request))
}

/** Answers that are no objects count as not given: they are asked for again. */
function responsesOf(params: JsonObject): Record<string, JsonObject> {
  const responses = params['inputResponses']
  if (responses === undefined) return {}
  if (!isObject(responses)) throw new RpcError(INVALID_PARAMS, 'inputResponses must be an object')
  return Object.fromEntries(Object.entries(responses).filter((entry): entry is [string, JsonObject] => isObject(entry[1])))
}

function targetOf({ method, params }: RpcRequest): string {
  return `${method} ${String(params?.['name'] ?? params?.['uri'] ?? '')}`
}

function pick<T>(from: Record<string, unknown>, keys: readonly string[]): Record<string, T> {
  return Object.fromEntries(keys.map((key) => [key, from[key] as T]))
}
