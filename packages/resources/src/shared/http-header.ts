import type { CelRule } from '../schema/cel.ts'
import { map, str } from '../schema/nodes.ts'

/** A token of RFC 9110. */
export const HEADER_NAME_PATTERN = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

/** No control character: a line break in a value would start a header of its own. */
export const HEADER_VALUE_PATTERN = '^[^\\x00-\\x08\\x0a-\\x1f\\x7f]*$'

/**
 * Headers, in lower case, that belong to the connection, to the trust between proxies or to MCP itself. A user who could set them could
 * smuggle requests, pose as another caller or break sessions.
 */
export const MANAGED_HEADERS = [
  'host',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
  'proxy-authorization',
  'proxy-authenticate',
  'proxy-connection',
  'transfer-encoding',
  'content-length',
  'content-type',
  'accept',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'last-event-id',
] as const

const celList = (names: readonly string[]) => `[${names.map((name) => `'${name}'`).join(',')}]`

const MANAGED_MESSAGE =
  'headers that the proxy sets itself cannot be set here: Host, Content-Type, Content-Length, Accept, hop-by-hop, Forwarded, X-Forwarded-*, X-Real-IP and MCP headers'

const nameIsFree: CelRule = { rule: `!(self.lowerAscii() in ${celList(MANAGED_HEADERS)})`, message: MANAGED_MESSAGE }

/** Name of a header that people may set. */
export const headerName = (description: string) =>
  str(description, { minLength: 1, maxLength: 255, pattern: HEADER_NAME_PATTERN, rules: [nameIsFree] })

export const namesAreTokens: CelRule = {
  rule: `self.all(k, size(k) <= 255 && k.matches("${HEADER_NAME_PATTERN}"))`,
  message: 'every key must be the name of an HTTP header: letters, digits and -_. without spaces, at most 255 characters',
}

const namesAreFree: CelRule = { rule: `self.all(k, !(k.lowerAscii() in ${celList(MANAGED_HEADERS)}))`, message: MANAGED_MESSAGE }

export const NAMES_DIFFER_MESSAGE = 'upper and lower case do not matter in the name of a header, and each may be listed only once'

const namesDiffer: CelRule = {
  rule: 'self.all(a, self.exists_one(b, a.lowerAscii() == b.lowerAscii()))',
  message: NAMES_DIFFER_MESSAGE,
}

/** Headers with fixed values, by name. */
export const plainHeaders = (description: string, maxProperties: number) =>
  map(description, str('The value.', { maxLength: 8192, pattern: HEADER_VALUE_PATTERN }), {
    maxProperties,
    rules: [namesAreTokens, namesAreFree, namesDiffer],
  })
