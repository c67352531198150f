import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { findMember, spliceMember } from '@thv/mcp/json-splice'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedMessage, ParsedRequest } from '@thv/mcp/parse-body'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import { SEARCH_TOOLS } from '@thv/vmcpconfig/vmcp-config'

/**
 * A call of `call_tool` as the call of the tool that it names, so that policies, limits, audit and the backend see that one. Undefined: any other
 * message. Models often write `tool_name` among the parameters; that is accepted too. Pure.
 */
export function innerCall(message: ParsedMessage): ParsedRequest | Rejection | undefined {
  if (message.kind !== 'request' || message.method !== METHODS.toolsCall) return undefined
  const params: JsonObject = isObject(message.message.params) ? message.message.params : {}
  if (params['name'] !== SEARCH_TOOLS.call) return undefined
  const { arguments: args } = params
  if (!isObject(args)) return invalid('arguments must be an object with tool_name and parameters')
  const { tool_name: given, parameters = {} } = args
  if (!isObject(parameters)) return invalid('parameters must be an object')
  const { tool_name: nested, ...others } = parameters
  const isNested = given === undefined
  const name = isNested ? nested : given
  if (typeof name !== 'string') return invalid('tool_name must be a string')
  if (name === SEARCH_TOOLS.call) return invalid(`${SEARCH_TOOLS.call} cannot call itself`)
  const inner = isNested ? others : parameters
  return {
    ...message,
    message: { ...message.message, params: { ...params, name, arguments: inner } },
    text: innerText(message.text, name, isNested),
  }
}

/** The parameters stay as they are written. */
function innerText(text: string, name: string, isNested: boolean): string {
  const span = findMember(text, ['params', 'arguments', 'parameters'])
  const written = span === undefined ? '{}' : text.slice(span.start, span.end)
  const parameters = isNested ? spliceMember(written, ['tool_name'], undefined) : written
  return spliceMember(spliceMember(text, ['params', 'name'], JSON.stringify(name)), ['params', 'arguments'], parameters)
}

function invalid(detail: string): Rejection {
  return reject('invalid_params', { detail: `${SEARCH_TOOLS.call}: ${detail}`, inBand: true })
}
