import type { SseEvent } from './sse-decoder.ts'

/** Headers of an event stream: not to be stored, and not to be held back by a proxy that buffers. */
export const SSE_RESPONSE_HEADERS = Object.freeze({
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
})

/** A comment, which no client sees as an event; keeps idle connections open. */
export const KEEP_ALIVE_FRAME = ': keep-alive\n\n'

/**
 * One event as it goes over the wire. Line ends in the data become `\n` on the other side, as the format has no way to tell them
 * apart. A name or id with a line end or NUL in it is a RangeError: it would begin another field.
 */
export function encodeEvent({ id, event, data, retry }: SseEvent): string {
  let frame = ''
  if (event !== undefined) frame += `event: ${singleLine(event)}\n`
  if (id !== undefined) frame += `id: ${singleLine(id)}\n`
  if (retry !== undefined) frame += `retry: ${retry}\n`
  return `${frame}${dataLines(data)}\n`
}

/** One JSON-RPC message as an event, the common case. */
export function messageFrame(json: string, id?: string): string {
  return id === undefined ? `event: message\n${dataLines(json)}\n` : `event: message\nid: ${singleLine(id)}\n${dataLines(json)}\n`
}

/**
 * The first event of a stream that a client may have to resume: an id with empty data, and how long to wait before a
 * reconnect. Only for clients of 2025-11-25 or later.
 */
export function primingFrame(id: string, retryMs?: number): string {
  return encodeEvent(retryMs === undefined ? { id, data: '' } : { id, data: '', retry: retryMs })
}

/** Tells the client when to come back, without being an event. */
export function retryFrame(retryMs: number): string {
  return `retry: ${retryMs}\n\n`
}

/** Serialised JSON has no raw line end, so the split is rare. */
function dataLines(data: string): string {
  if (!data.includes('\n') && !data.includes('\r')) return `data: ${data}\n`
  return `data: ${data.replace(/\r\n|\r|\n/g, '\ndata: ')}\n`
}

function singleLine(value: string): string {
  if (/[\r\n\0]/.test(value)) throw new RangeError('the name and id of an event must be single lines')
  return value
}
