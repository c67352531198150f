import { type IncomingHttpHeaders, request as plain } from 'node:http'
import { request as secure } from 'node:https'

export interface PlainCall {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** `head`: what comes after it may have no end, and the connection is closed. */
  readonly until: 'head' | 'end'
}

export interface PlainAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/**
 * One request whose response body is not needed. Rejects when there is no answer, or the signal fires. Not `fetch`: that
 * loads a second HTTP client for good into a process which stays, for a handful of calls at its start.
 */
export function plainCall(url: string, { method = 'GET', headers = {}, body, signal, until }: PlainCall): Promise<PlainAnswer> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? secure : plain
    const call = send(url, { method, headers, signal, agent: false })
    call.on('error', reject)
    call.once('response', (response) => {
      response.on('error', reject)
      const answer = { status: response.statusCode ?? 0, headers: response.headers }
      if (until === 'head') {
        resolve(answer)
        response.destroy()
      } else response.once('end', () => resolve(answer)).resume()
    })
    call.end(body)
  })
}
