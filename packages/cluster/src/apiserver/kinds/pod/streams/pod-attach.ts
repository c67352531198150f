import { errorMessage } from '@thv/kernel/errors'
import { headerOf } from '../../../http/read-input.ts'
import { type ApiCall, flagOf } from '../../../http/request-context.ts'
import { badRequest, failure, methodNotAllowed, StatusError } from '../../../objects/status-error.ts'
import type { AttachOptions } from '../pod-streams.ts'
import { ATTACH_PROTOCOLS, serveChannels } from './channels.ts'
import { podTarget, streamsOf } from './pod-target.ts'

/** …/pods/NAME/attach. kubectl asks by WebSocket first, and by SPDY when that is refused: then it shows this refusal, so both give the same. */
export async function attachToPod(call: ApiCall): Promise<void> {
  const { exchange, upgrade } = call
  if (exchange.method !== 'GET' && exchange.method !== 'POST') throw methodNotAllowed()
  const { target, nodeName } = podTarget(call)
  if (nodeName === '') throw badRequest(`pod ${target.pod} does not have a host assigned`)
  const options = { ...wantedStreams(call), signal: exchange.signal }
  const streams = streamsOf(call)
  if (upgrade === undefined) throw notUpgradable(call)
  const offered = headerOf(exchange, 'sec-websocket-protocol')
    .split(',')
    .map((name) => name.trim())
  const protocol = ATTACH_PROTOCOLS.find((name) => offered.includes(name))
  if (protocol === undefined)
    throw badRequest(`none of the offered protocols is known here: attach needs one of ${ATTACH_PROTOCOLS.join(', ')}`)
  const container = await streams.attach(target, options)
  try {
    const socket = await upgrade.accept(protocol)
    const failed = (error: unknown) => JSON.stringify(statusOf(error))
    await serveChannels(socket, container, { ...options, failed }).finally(() => socket.terminate())
  } finally {
    container.close()
  }
}

function wantedStreams({ query }: ApiCall): Omit<AttachOptions, 'signal'> {
  const [stdin, stdout, stderr, tty] = ['stdin', 'stdout', 'stderr', 'tty'].map((name) => flagOf(query, name)) as [
    boolean,
    boolean,
    boolean,
    boolean,
  ]
  if (!stdin && !stdout && !stderr) throw badRequest('you must specify at least 1 of stdin, stdout, stderr')
  // A terminal has one output.
  return { stdin, stdout, stderr: stderr && !tty }
}

function notUpgradable({ exchange }: ApiCall): StatusError {
  if (headerOf(exchange, 'upgrade') === '') return badRequest('Upgrade request required')
  const message = `attach is served over WebSockets only (${ATTACH_PROTOCOLS.join(', ')}), which kubectl 1.31 and later use`
  return new StatusError({ code: 501, reason: 'NotImplemented', message })
}

function statusOf(error: unknown): object {
  if (error instanceof StatusError) return error.body
  return failure({ code: 500, reason: 'InternalError', message: `Internal error occurred: ${errorMessage(error)}` })
}
