import { wireErrors } from '@thv/kernel/error-registry'
import type { FuzzCase } from './fuzz-case.ts'
import type { HttpAnswer } from './http-answers.ts'
import type { Exchange } from './raw-exchange.ts'

/** Internals that no client may ever see. */
const INSIDES = /node:internal|node_modules|\bdist\/|\/src\/|\.ts:\d|\n {4}at /

/** The problem with the handling of a request; undefined when there is none. */
export function verdictOf({ seed, changes, requestId, transmission }: FuzzCase, exchange: Exchange): string | undefined {
  const { outcome, answers, garbage } = exchange
  if (outcome === 'hung') return 'neither answered nor closed'
  if (garbage !== undefined) return `bytes that are no HTTP answer: ${garbage}`
  for (const answer of answers) {
    const problem = problemOf(answer, transmission.isHead)
    if (problem !== undefined) return problem
  }
  // Where the bytes were changed, or come several times, it is not sure which request an answer is to.
  const isSure = transmission.expected === 1 && !changes.some((change) => /flipped bits anywhere|cut off|another protocol/.test(change))
  const [answer] = answers
  if (isSure && answer !== undefined && !hasIdOf(answer, requestId)) return `an answer to another id than ${JSON.stringify(requestId)}`
  if (changes.length > 0) return undefined
  if (answer === undefined) return `a request in order was not answered but ${outcome}`
  return seed.status === undefined || seed.status.includes(answer.status)
    ? undefined
    : `a request in order was answered with ${answer.status}`
}

function problemOf({ status, headers, body, complete }: HttpAnswer, isHead: boolean): string | undefined {
  const text = body.toString('utf8')
  const hasNoBody = isHead && text === ''
  if (INSIDES.test(text)) return 'an answer that shows the inside'
  if (status >= 500 && !(status === 502 || status === 503 || status === 504)) return `status ${status}`
  if (status >= 500 && !hasNoBody && !isCoded(status, text)) return `status ${status} without a coded body`
  if (status === 503 && !/^[1-9]\d*$/.test(headers.get('retry-after') ?? '')) return 'status 503 without Retry-After'
  const isJson = headers.get('content-type')?.startsWith('application/json') === true && complete && text !== ''
  return isJson && parsed(text) === undefined ? 'a body that is declared as JSON and is none' : undefined
}

/** One of the registered errors with just this status, under its registered text. */
function isCoded(status: number, text: string): boolean {
  const { jsonrpc, error } = (parsed(text) ?? {}) as { jsonrpc?: unknown; error?: { code?: unknown; message?: unknown } }
  const known = Object.values(wireErrors).find(({ httpStatus, jsonRpcCode }) => httpStatus === status && jsonRpcCode === error?.code)
  return jsonrpc === '2.0' && known !== undefined && typeof error?.message === 'string' && error.message.startsWith(known.text)
}

/** Results must name the request; errors may be without an id, but never under another one. */
function hasIdOf({ headers, body }: HttpAnswer, requestId: unknown): boolean {
  if (headers.get('content-type')?.startsWith('application/json') !== true) return true
  const message = parsed(body.toString('utf8')) as { jsonrpc?: unknown; id?: unknown; result?: unknown } | undefined
  if (message?.jsonrpc !== '2.0') return true
  return message.id === requestId || (message.id === undefined && !('result' in message))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
