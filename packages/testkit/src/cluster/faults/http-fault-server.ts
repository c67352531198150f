import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCertificate } from '../identity/certificate.ts'

/** A fault, instead of or besides forwarding a request. */
export type Fault =
  /** Answered here, with a Kubernetes Status as body; `retryAfter` is sent as the Retry-After header. */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: string; readonly message?: string }
  /** Forwarded after a while. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The real answer, but the connection breaks after so many bytes of its body; a shorter one passes whole. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** 200 with a body that is no JSON; with `afterBytes`, the real answer with the garbage put in there. */
  | { readonly kind: 'garbage'; readonly afterBytes?: number; readonly bytes?: string }
  /** The connection breaks before any answer; the API server has not seen the request. */
  | { readonly kind: 'reset' }

export interface FaultRule {
  readonly fault: Fault
  /** Every request when absent. */
  readonly matches?: (request: { readonly method: string; readonly url: string }) => boolean
  /** 1 when absent. */
  readonly times?: number
}

export interface SeenRequest {
  readonly method: string
  readonly url: string
  /** As the client got it; 0 when it got none. */
  status: number
  readonly fault?: Fault['kind']
}

/** An HTTPS reverse proxy in front of the API server that breaks chosen requests. Does not forward upgrades (exec, attach). */
export interface HttpFaultServer extends AsyncDisposable {
  readonly url: string
  readonly caPem: string
  readonly counts: { readonly requests: number; readonly forwarded: number; readonly faults: number }
  /** The newest 10,000 requests, oldest first. */
  readonly seen: readonly SeenRequest[]
  /** The first rule that matches and is not used up is applied. Returns a handle that says how often it was. */
  inject(rule: FaultRule): { readonly applied: number; remove(): void }
  close(): Promise<void>
}

const seenLimit = 10_000
const reasons: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}
const defaultGarbage = '\u0000{"kind": <not json>\n'

export async function startHttpFaultServer(target: { readonly url: string; readonly caPem: string }): Promise<HttpFaultServer> {
  const certificate = createCertificate({ commonName: 'fault server', hosts: ['127.0.0.1', 'localhost'], ca: true })
  const closing = new AbortController()
  const rules: { readonly rule: FaultRule; applied: number }[] = []
  const seen: SeenRequest[] = []
  const counts = { requests: 0, forwarded: 0, faults: 0 }

  const takeFault = (method: string, url: string): Fault | undefined => {
    const entry = rules.find(({ rule, applied }) => applied < (rule.times ?? 1) && (rule.matches?.({ method, url }) ?? true))
    if (!entry) return undefined
    entry.applied++
    return entry.rule.fault
  }

  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const { method = 'GET', url = '/' } = incoming
    const fault = takeFault(method, url)
    const entry: SeenRequest = { method, url, status: 0, ...(fault ? { fault: fault.kind } : {}) }
    if (seen.push(entry) > seenLimit) seen.shift()
    counts.requests++
    if (fault) counts.faults++
    if (fault?.kind === 'reset') return incoming.socket.resetAndDestroy()
    if (fault?.kind === 'status') return answerStatus(response, fault, entry)
    if (fault?.kind === 'garbage' && fault.afterBytes === undefined) return answerGarbage(response, fault.bytes, entry)
    if (fault?.kind === 'delay') await sleep(fault.ms, undefined, { signal: closing.signal })
    counts.forwarded++
    forward({ incoming, response, fault, entry })
  }

  const forward = ({ incoming, response, fault, entry }: Forward) => {
    // A connection of its own each time: a kept one that the API server closes meanwhile would be a fault that was not injected.
    const headers = [...endToEnd(incoming.rawHeaders), 'connection', 'close']
    const options = { method: entry.method, ca: target.caPem, agent: false, headers, setDefaultHeaders: false }
    const outgoing = request(`${target.url}${incoming.url}`, options, (answer) => {
      entry.status = answer.statusCode ?? 0
      const unframed = fault?.kind === 'garbage' ? ['content-length'] : []
      response.writeHead(entry.status, endToEnd(answer.rawHeaders, ['transfer-encoding', ...unframed]))
      response.flushHeaders()
      answer.on('error', () => breakOff(response))
      copyBody(answer, response, fault)
    })
    outgoing.on('error', () => breakOff(response))
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  }

  const listener = createServer({ cert: certificate.certPem, key: certificate.keyPem }, (incoming, response) => {
    handle(incoming, response).catch((error: Error) => response.destroy(error))
  })
  // Watches last longer than the default of five minutes for a whole request.
  listener.requestTimeout = 0
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const close = async () => {
    const closed = listener.listening ? once(listener, 'close') : undefined
    listener.close()
    listener.closeAllConnections()
    closing.abort()
    await closed
  }

  return {
    url: `https://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    caPem: certificate.certPem,
    counts,
    seen,
    inject: (rule) => {
      const entry = { rule, applied: 0 }
      rules.push(entry)
      return {
        get applied() {
          return entry.applied
        },
        remove: () => {
          const index = rules.indexOf(entry)
          if (index >= 0) rules.splice(index, 1)
        },
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

interface Forward {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly fault: Fault | undefined
  readonly entry: SeenRequest
}

function answerStatus(response: ServerResponse, fault: Fault & { kind: 'status' }, entry: SeenRequest): void {
  entry.status = fault.status
  const message = fault.message ?? `injected ${fault.status}`
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: reasons[fault.status],
    code: fault.status,
  }
  const retry = fault.retryAfter === undefined ? {} : { 'retry-after': fault.retryAfter }
  response.writeHead(fault.status, { 'content-type': 'application/json', ...retry }).end(JSON.stringify(body))
}

function answerGarbage(response: ServerResponse, bytes = defaultGarbage, entry: SeenRequest): void {
  entry.status = 200
  response.writeHead(200, { 'content-type': 'application/json' }).end(bytes)
}

function copyBody(answer: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
  const at = fault?.kind === 'cut' || fault?.kind === 'garbage' ? fault.afterBytes : undefined
  if (at === undefined) {
    answer.pipe(response)
    return
  }
  const garbage = Buffer.from((fault?.kind === 'garbage' ? fault.bytes : undefined) ?? defaultGarbage)
  const write = (bytes: Buffer) => {
    if (response.write(bytes)) return
    answer.pause()
    response.once('drain', () => answer.resume())
  }
  let left = at
  answer.on('data', (chunk: Buffer) => {
    const before = left
    left -= chunk.length
    if (before < 0 || left > 0) return write(chunk)
    left = -1
    response.write(chunk.subarray(0, before))
    if (fault?.kind === 'garbage') return write(Buffer.concat([garbage, chunk.subarray(before)]))
    answer.removeAllListeners('end').destroy()
    breakOff(response)
  })
  answer.on('end', () => response.end())
}

/** Sends what was written before, then ends the connection without a proper end of the body. */
function breakOff(response: ServerResponse): void {
  const socket = response.socket
  if (!socket || socket.destroyed) return
  // Node collects the chunks of one turn and hands them to the socket after it.
  setImmediate(() => socket.end(() => socket.destroy()))
}

/** Without what concerns one connection only (RFC 9110 §7.6.1), and without `more`. */
function endToEnd(raw: readonly string[], more: readonly string[] = []): string[] {
  const dropped = ['connection', 'keep-alive', 'upgrade', 'te', ...more]
  return raw.flatMap((name, index) => (index % 2 === 0 && !dropped.includes(name.toLowerCase()) ? [name, raw[index + 1] ?? ''] : []))
}
