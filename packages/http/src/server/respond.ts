import { STATUS_CODES } from 'node:http'
import type { Exchange } from './exchange.ts'

/** Flat name-value pairs, the form that costs Node least. */
export type HeaderPairs = readonly string[]

export interface AnswerOptions {
  /** 200 unless told otherwise. */
  readonly status?: number
  readonly headers?: HeaderPairs
}

export interface Content {
  readonly type: string
  readonly body: Uint8Array
  readonly headers?: HeaderPairs
}

const NONE: HeaderPairs = []

/**
 * The answer in one piece, with its length. When the client is gone it does nothing; when an answer has begun already it throws,
 * because two answers are a mistake of the handler.
 */
export function sendBytes(exchange: Exchange, status: number, content: Content): void {
  const { response } = exchange
  if (exchange.closed || response.destroyed) return
  const { type, body, headers = NONE } = content
  response.writeHead(status, ['Content-Type', type, 'Content-Length', String(body.byteLength), ...headers])
  exchange.bytesSent += body.byteLength
  response.end(body)
}

/** Node takes three bytes for each character of a text until it is written. */
const MAX_PLAIN_TEXT = 64 * 1024

/** As `sendBytes`, for a text: Node writes it together with the head, without a buffer of its own. The headers must be ASCII. */
export function sendWholeText(exchange: Exchange, status: number, content: Omit<Content, 'body'> & { readonly text: string }): void {
  const { response } = exchange
  if (exchange.closed || response.destroyed) return
  const { type, text, headers = NONE } = content
  if (text.length > MAX_PLAIN_TEXT) {
    sendBytes(exchange, status, { type, body: Buffer.from(text), headers })
    return
  }
  const bytes = Buffer.byteLength(text)
  response.writeHead(status, ['Content-Type', type, 'Content-Length', String(bytes), ...headers])
  exchange.bytesSent += bytes
  response.cork() // until `end`: without it Node writes the text, and then nothing once more
  response.end(text)
}

export function sendJson(exchange: Exchange, value: unknown, { status = 200, headers = NONE }: AnswerOptions = {}): void {
  sendBytes(exchange, status, { type: 'application/json', body: Buffer.from(JSON.stringify(value)), headers })
}

export function sendText(exchange: Exchange, text: string, { status = 200, headers = NONE }: AnswerOptions = {}): void {
  sendBytes(exchange, status, { type: 'text/plain; charset=utf-8', body: Buffer.from(text), headers })
}

/** RFC 9110 §8.6: 204 and 304 have no length at all, others say 0. */
export function sendEmpty(exchange: Exchange, status: number, headers: HeaderPairs = NONE): void {
  const { response } = exchange
  if (exchange.closed || response.destroyed) return
  response.writeHead(status, status === 204 || status === 304 ? [...headers] : ['Content-Length', '0', ...headers])
  response.end()
}

/** `{"error": "…"}` with the name of the status unless a better text is given. */
export function sendProblem(exchange: Exchange, status: number, options: { text?: string; headers?: HeaderPairs } = {}): void {
  const { text = STATUS_CODES[status] ?? 'error', headers = NONE } = options
  sendJson(exchange, { error: text }, { status, headers })
}

/** RFC 9110 §15.5.6: 405 must say what is allowed. */
export function sendMethodNotAllowed(exchange: Exchange, allow: string): void {
  sendProblem(exchange, 405, { headers: ['Allow', allow] })
}
