export interface SseFrame {
  readonly id?: string
  readonly event?: string
  readonly retry?: number
  readonly data?: string
}

/** Serialises one server-sent event. JSON never holds a raw line break, so `data` is always one line. */
export function sseFrame(frame: SseFrame): string {
  let text = ''
  if (frame.event !== undefined) text += `event: ${frame.event}\n`
  if (frame.id !== undefined) text += `id: ${frame.id}\n`
  if (frame.retry !== undefined) text += `retry: ${frame.retry}\n`
  if (frame.data !== undefined) text += `data: ${frame.data}\n`
  return `${text}\n`
}

export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const

export const SSE_KEEP_ALIVE = ': keep-alive\n\n'
