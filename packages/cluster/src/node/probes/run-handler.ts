import { request as httpRequest, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { errorMessage } from '@thv/kernel/errors'
import type { ContainerSpec, HandlerSpec, HttpGetSpec } from '../pod/pod-spec.ts'

export interface HandlerEnv {
  readonly container: ContainerSpec
  readonly address: string
  /** Runs a command in the container's surroundings; its output is cut to what a message can hold. */
  readonly exec: (command: readonly string[], signal: AbortSignal) => Promise<{ exitCode: number; output: string }>
}

export interface HandlerResult {
  readonly ok: boolean
  readonly output: string
}

const MAX_BODY = 10 << 10

/** Never rejects. The signal is the time limit. */
export async function runHandler(handler: HandlerSpec, env: HandlerEnv, signal: AbortSignal): Promise<HandlerResult> {
  try {
    if (handler.httpGet) return await httpGet(handler.httpGet, env, signal)
    if (handler.tcpSocket) return await tcpConnect(handler.tcpSocket, env, signal)
    if (handler.exec) return await execCommand(handler.exec.command ?? [], env, signal)
    return {
      ok: false,
      output: `this node cannot run a ${handler.grpc ? 'grpc handler: use httpGet, tcpSocket or exec' : 'handler that says nothing'}`,
    }
  } catch (error) {
    return { ok: false, output: signal.aborted ? 'the time limit was exceeded' : errorMessage(error) }
  }
}

/** Any status from 200 to 399 is a success; certificates are not verified, as a kubelet does not. */
function httpGet(get: HttpGetSpec, { container, address }: HandlerEnv, signal: AbortSignal): Promise<HandlerResult> {
  const isTls = get.scheme?.toUpperCase() === 'HTTPS'
  const headers: Record<string, string> = { 'user-agent': 'kube-probe/1.34', accept: '*/*', connection: 'close' }
  for (const { name, value } of get.httpHeaders ?? []) headers[name.toLowerCase()] = value
  const path = get.path ?? '/'
  const options: RequestOptions & { rejectUnauthorized?: boolean } = {
    host: get.host || address,
    port: portOf(get.port, container),
    path: path.startsWith('/') ? path : `/${path}`,
    headers,
    agent: false,
    signal,
    ...(isTls && { rejectUnauthorized: false }),
  }
  return new Promise((resolve, reject) => {
    const request = (isTls ? httpsRequest : httpRequest)(options, (response) => {
      const status = response.statusCode ?? 0
      const result = { ok: status >= 200 && status < 400, output: `HTTP probe failed with statuscode: ${status}` }
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > MAX_BODY) finish()
      })
      const finish = () => {
        request.destroy()
        resolve(result)
      }
      response.once('end', finish)
      response.once('error', finish)
    })
    request.once('error', (error) => reject(error))
    // Of an answer that changes the protocol Node tells nothing else.
    request.once('close', () => reject(new Error('the connection was closed without an answer')))
    request.end()
  })
}

function tcpConnect(
  target: { host?: string; port: number | string },
  { container, address }: HandlerEnv,
  signal: AbortSignal,
): Promise<HandlerResult> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: target.host || address, port: portOf(target.port, container), signal })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.destroy()
      resolve({ ok: true, output: '' })
    })
  })
}

async function execCommand(command: readonly string[], env: HandlerEnv, signal: AbortSignal): Promise<HandlerResult> {
  const { exitCode, output } = await env.exec(command, signal)
  return { ok: exitCode === 0, output: output.trim() || `command ended with code ${exitCode}` }
}

function portOf(port: number | string, { ports = [] }: ContainerSpec): number {
  if (typeof port === 'number') return port
  const named = ports.find(({ name }) => name === port)?.containerPort
  const number = named ?? (/^\d{1,5}$/.test(port) ? Number(port) : undefined)
  if (number === undefined) throw new RangeError(`there is no port ${JSON.stringify(port)}`)
  return number
}
