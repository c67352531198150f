import { ThvError } from '@thv/kernel/errors'
import type { KubeStatus } from '../objects/types.ts'
import type { CallName } from './kube-api-error.ts'
import { KubeApiError } from './kube-api-error.ts'

const ERROR_BODY_LIMIT = 1 << 20
const SUMMARY_LENGTH = 200

export interface BodyStream extends AsyncIterable<Uint8Array> {
  destroy(): unknown
}

/** Reads a whole body, at most `limit` bytes; more than that closes the connection and throws. */
export async function readBody(body: BodyStream, limit: number, call: CallName): Promise<Buffer> {
  const { bytes, complete } = await readUpTo(body, limit)
  if (!complete) {
    throw new ThvError('kube_response_too_large', `${call.verb} ${call.target}: the response is larger than ${limit} bytes`, {
      details: { limit },
    })
  }
  return bytes
}

/** The error for an answer of 300 and above. Its body may be cut off: only a summary of it is kept. */
export async function readError(body: BodyStream, init: { call: CallName; status: number; retryAfterSeconds: number | undefined }) {
  const { bytes } = await readUpTo(body, ERROR_BODY_LIMIT)
  const text = bytes.toString('utf8')
  return new KubeApiError({ ...init, body: parseStatus(text), summary: summarise(text) })
}

/** Parses a body that must be a JSON object. */
export function parseObject(bytes: Buffer | string, call: CallName): Record<string, unknown> {
  const text = bytes.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's own message is not kept: it quotes the text, which may be a Secret.
    throw malformed(call, `not JSON (${Buffer.byteLength(text)} bytes)`)
  }
  if (!isRecord(value)) throw malformed(call, 'not a JSON object')
  return value
}

export function malformed(call: CallName, what: string): ThvError {
  return new ThvError('kube_response_malformed', `${call.verb} ${call.target}: the server's answer is ${what}`)
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

async function readUpTo(body: BodyStream, limit: number): Promise<{ bytes: Buffer; complete: boolean }> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) {
      body.destroy()
      chunks.push(chunk.subarray(0, chunk.length - (size - limit)))
      return { bytes: Buffer.concat(chunks), complete: false }
    }
    chunks.push(chunk)
  }
  return { bytes: Buffer.concat(chunks), complete: true }
}

function parseStatus(text: string): KubeStatus | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? asStatus(value) : undefined
  } catch {
    return undefined // a proxy's HTML, say: the summary tells
  }
}

/** Takes over only what has the right type, so that no reader of the error meets a surprise. */
export function asStatus(value: Record<string, unknown>): KubeStatus | undefined {
  if (value.kind !== 'Status') return undefined
  const status: KubeStatus = { kind: 'Status' }
  if (typeof value.message === 'string') status.message = value.message
  if (typeof value.reason === 'string') status.reason = value.reason
  if (typeof value.code === 'number') status.code = value.code
  if (isRecord(value.details)) {
    const { retryAfterSeconds, causes } = value.details
    status.details = {}
    if (typeof retryAfterSeconds === 'number' && retryAfterSeconds >= 0) status.details.retryAfterSeconds = retryAfterSeconds
    if (Array.isArray(causes)) status.details.causes = causes.filter(isRecord)
  }
  return status
}

function summarise(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  if (line === '') return 'empty response'
  return line.length > SUMMARY_LENGTH ? `${line.slice(0, SUMMARY_LENGTH)}…` : line
}
