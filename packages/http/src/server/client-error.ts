import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

/**
 * The answer to what is no request, written by hand because there is no response object, and the end of the connection. When an answer
 * has begun on it, bytes of another would fall into its middle: then the connection is only cut.
 */
export function answerClientError(error: Error, socket: Socket, answerBegun: boolean): void {
  if (answerBegun || !socket.writable || codeOf(error) === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const status = statusOf(error)
  const body = JSON.stringify({ error: STATUS_CODES[status], code: CODES[status] })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}

const CODES: Readonly<Record<number, string>> = {
  400: 'bad_request',
  408: 'request_timeout',
  413: 'body_too_large',
  431: 'headers_too_large',
}

export function statusOf(error: Error): number {
  switch (codeOf(error)) {
    case 'HPE_HEADER_OVERFLOW':
      return 431
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 413
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 408
    default:
      return 400
  }
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
