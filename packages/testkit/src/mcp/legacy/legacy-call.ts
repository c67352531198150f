import { randomUUID } from 'node:crypto'
import type { AskOptions, Call, InputRequest, Origin } from '../features/call.ts'
import { demandDeclared } from '../features/input-requests.ts'
import { metaOf } from '../wire/classify.ts'
import { type JsonObject, notification, objectOf, type RpcMessage, type RpcRequest } from '../wire/json-rpc.ts'
import { atLeast } from '../wire/protocol.ts'
import type { LegacyInbound, LegacySession } from './legacy-session.ts'

export interface LegacyRequest {
  readonly request: RpcRequest
  readonly inbound: LegacyInbound
  readonly signal: AbortSignal
}

/** A call of the handshake revisions: the level of logging belongs to the session, questions are real requests. */
export function createLegacyCall(session: LegacySession, { request, inbound, signal }: LegacyRequest): Call {
  const params = request.params ?? {}
  const { channel } = inbound
  const token = metaOf(params)['progressToken']
  return {
    world: session.world,
    era: 'legacy',
    params,
    args: objectOf(params['arguments']),
    origin: originOf(session, inbound),
    channel,
    signal,
    resumed: false,
    log: (level, data) => {
      if (!atLeast(level, session.logLevel ?? 'info')) return
      channel.send(notification('notifications/message', { level, logger: 'fixture', data }))
    },
    progress: (progress, total) => {
      if (token === undefined) return
      channel.send(notification('notifications/progress', { progressToken: token, progress, total }))
    },
    unsolicited: (message) => session.standalone(message),
    ask: async (requests, options) => {
      demandDeclared(Object.values(requests), session.clientCapabilities)
      const asker = { session, signal, send: senderFor(options, session, inbound) }
      const answers = Object.entries(requests).map(async ([key, asked]) => [key, await askOne(asked, asker)] as const)
      return Object.fromEntries(await Promise.all(answers))
    },
  }
}

interface Asker {
  readonly session: LegacySession
  readonly signal: AbortSignal
  readonly send: (message: RpcMessage) => void
}

/** URL mode has an id in this era, and a notification when the user is done. */
async function askOne(request: InputRequest, { session, signal, send }: Asker): Promise<JsonObject> {
  if (request.params?.['mode'] !== 'url') return session.request(send, request, signal)
  const elicitationId = randomUUID()
  const answer = await session.request(send, { ...request, params: { ...request.params, elicitationId } }, signal)
  if (answer['action'] === 'accept') send(notification('notifications/elicitation/complete', { elicitationId }))
  return answer
}

function senderFor(options: AskOptions | undefined, session: LegacySession, inbound: LegacyInbound): (message: RpcMessage) => void {
  return options?.standalone ? (message) => session.standalone(message) : (message) => inbound.channel.send(message)
}

function originOf(session: LegacySession, inbound: LegacyInbound): Origin {
  return {
    transport: session.transport,
    protocolVersion: session.version,
    clientInfo: session.clientInfo,
    clientCapabilities: session.clientCapabilities,
    ...(session.stateless ? {} : { session: session.id }),
    ...(inbound.headers ? { headers: inbound.headers } : {}),
  }
}
