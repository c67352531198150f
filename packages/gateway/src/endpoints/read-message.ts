import { headerText } from '@thv/http/header-map'
import { RequestError } from '@thv/http/http-errors'
import type { Exchange } from '@thv/http/server/exchange'
import { readBody } from '@thv/http/server/read-body'
import { type ParsedBody, type ParseLimits, parseBody } from '@thv/mcp/parse-body'
import { type Rejection, reject } from '@thv/mcp/wire-errors'

/** One bounded read and one parse, for all who look at the message afterwards. Rejects when the client went away or was too slow. */
export async function readMessage(exchange: Exchange, limits: ParseLimits): Promise<ParsedBody | Rejection> {
  let bytes: Buffer
  try {
    bytes = await readBody(exchange, limits.maxBytes)
  } catch (error) {
    if (error instanceof RequestError && error.status === 413) return reject('body_too_large', { detail: `over ${limits.maxBytes} bytes` })
    if (error instanceof RequestError && error.status === 415) return reject('unsupported_media_type', { detail: 'it is compressed' })
    throw error
  }
  if (!isJson(headerText(exchange.headers['content-type'])))
    return reject('unsupported_media_type', { detail: 'it must be application/json' })
  return parseBody(bytes, limits)
}

/** JSON is UTF-8; a client that declares anything else means something else. */
function isJson(type: string | undefined): boolean {
  if (type === 'application/json') return true
  return /^application\/json\s*(;\s*charset="?utf-?8"?\s*)?$/i.test(type ?? '')
}
