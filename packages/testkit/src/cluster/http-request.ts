import { request as plain } from 'node:http'
import { request as secure } from 'node:https'
import { PATIENCE_MS } from '../run/patience.ts'
import type { ClusterAccess } from './cluster-access.ts'
import type { Certificate } from './identity/certificate.ts'

export interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Anything but a string is sent as JSON. */
  readonly body?: unknown
  readonly caPem?: string
  /** The client's own certificate. */
  readonly certificate?: Certificate
  readonly limitMs?: number
}

export interface Answer {
  readonly status: number
  readonly text: string
  json<T = Record<string, unknown>>(): T
}

/**
 * One request on a connection of its own. On purpose not our Kubernetes client: the harness must not depend on what it tests,
 * and a pooled connection would outlive the server that a test kills.
 */
export function request(url: string, options: RequestOptions = {}): Promise<Answer> {
  const { method = 'GET', body, caPem, limitMs = PATIENCE_MS } = options
  const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const headers = { ...(payload === undefined ? {} : { 'content-type': 'application/json' }), ...options.headers }
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? secure : plain
    const tls = { ca: caPem, cert: options.certificate?.certPem, key: options.certificate?.keyPem }
    const call = send(url, { method, headers, agent: false, ...tls }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, text, json: <T>() => JSON.parse(text) as T })
      })
    })
    const limit = setTimeout(() => call.destroy(new Error(`no answer within ${limitMs} ms`)), limitMs)
    call.on('close', () => clearTimeout(limit))
    call.on('error', reject)
    call.end(payload)
  })
}

/** A request to the API server, as its administrator unless a token is given. */
export function apiRequest(
  access: ClusterAccess,
  path: string,
  options: RequestOptions & { readonly token?: string } = {},
): Promise<Answer> {
  const authorization = `Bearer ${options.token ?? access.adminToken}`
  return request(`${access.url}${path}`, { ...options, caPem: access.caPem, headers: { authorization, ...options.headers } })
}
