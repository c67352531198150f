import { isObject, type UnknownObject } from '@thv/kernel/json'
import { plainText, shortened } from '../../text/plain-text.ts'

/** JSON-RPC 2.0, section 5.1. The text of an error is the server's own, and may repeat arguments. */
const ERRORS: Readonly<Record<number, string>> = {
  [-32700]: 'parse error',
  [-32600]: 'invalid request',
  [-32601]: 'method not found',
  [-32602]: 'invalid params',
  [-32603]: 'internal error',
}

/** A member that only the result of one method has. A response names no method, and the request went into the server, not into its log. */
const RESULTS: readonly (readonly [member: string, method: string])[] = [
  ['serverInfo', 'initialize'],
  ['tools', 'tools/list'],
  ['content', 'tools/call'],
  ['resources', 'resources/list'],
  ['resourceTemplates', 'resources/templates/list'],
  ['contents', 'resources/read'],
  ['prompts', 'prompts/list'],
  ['messages', 'prompts/get'],
  ['completion', 'completion/complete'],
]

const MAX_METHOD = 80

/** One message that an MCP server sent: its method and how it went; never arguments or results. Pure. */
export function rpcLine(message: UnknownObject): string {
  const { method, result, error } = message
  if (typeof method === 'string') {
    const level = method === 'notifications/message' && isObject(message['params']) ? message['params']['level'] : undefined
    return ['←', shortened(plainText(method), MAX_METHOD), shortened(plainText(level), MAX_METHOD)].join(' ').trim()
  }
  if (isObject(error)) {
    const code = typeof error['code'] === 'number' ? error['code'] : 'without a code'
    const name = typeof code === 'number' ? ERRORS[code] : undefined
    return `← response  ✗ error ${code}${name === undefined ? '' : ` (${name})`}`
  }
  if (!isObject(result)) return '← response  ✓'
  const known = RESULTS.find(([member]) => Object.hasOwn(result, member))?.[1] ?? 'response'
  return `← ${known}  ${result['isError'] === true ? '✗ tool error' : '✓'}`
}
