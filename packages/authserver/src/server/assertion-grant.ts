import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { sendJson } from '@thv/http/server/respond'
import { GrantRefused } from '../exchange/grant-refused.ts'
import { JWT_BEARER } from '../exchange/grant-types.ts'
import { redeemAssertion } from '../exchange/jwt-bearer.ts'
import type { ExchangeDeps } from '../exchange/token-exchange.ts'

export interface AssertionOptions {
  readonly deps: ExchangeDeps
  readonly onRedeemed: (subject: string) => void
  readonly onRefused: (reason: string) => void
}

/** Answers a token request with an assertion, which needs no client (RFC 7523 §3.1). False: it is another request. */
export async function answerAssertion(exchange: Exchange, body: Buffer, options: AssertionOptions): Promise<boolean> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(headerText(exchange.headers['content-type']) ?? '')) return false
  const params = new URLSearchParams(body.toString('utf8'))
  if (params.get('grant_type') !== JWT_BEARER) return false
  const headers = ['Access-Control-Allow-Origin', '*', 'Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']
  try {
    const { answer, subject } = await redeemAssertion(params, options.deps)
    options.onRedeemed(subject)
    sendJson(exchange, answer, { headers })
  } catch (error) {
    if (!(error instanceof GrantRefused)) throw error
    options.onRefused(error.reason)
    const isBusy = error.error === 'temporarily_unavailable'
    sendJson(
      exchange,
      { error: error.error, error_description: error.message },
      { status: isBusy ? 503 : 400, headers: isBusy ? [...headers, 'Retry-After', '2'] : headers },
    )
  }
  return true
}

/** A request whose body was read, for one who reads it again. */
export function withBody(request: IncomingMessage, body: Buffer): IncomingMessage {
  const { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor, socket } = request
  const fields = { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor, socket }
  return Object.assign(Readable.from([body], { objectMode: false }), fields) as unknown as IncomingMessage
}
