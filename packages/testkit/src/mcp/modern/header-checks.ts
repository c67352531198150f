import type { IncomingHttpHeaders } from 'node:http'
import type { Tool } from '../features/call.ts'
import { annotatedParams, decodeHeaderValue, headerEquals, valueAt } from '../wire/header-value.ts'
import { type JsonObject, RpcError, type RpcRequest } from '../wire/json-rpc.ts'
import { HEADER_MISMATCH } from '../wire/protocol.ts'

const NAME_MEMBER: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** Comes before the check that the version is served: two versions that differ are a mismatch, whatever they are. */
export function checkVersionHeader(headers: IncomingHttpHeaders, version: string): void {
  if (headers['mcp-protocol-version'] !== version) throw mismatch('MCP-Protocol-Version', 'params._meta')
}

/** `Mcp-Method` always, `Mcp-Name` for the methods that name something. */
export function checkRoutingHeaders(headers: IncomingHttpHeaders, request: RpcRequest): void {
  if (one(headers['mcp-method']) !== request.method) throw mismatch('Mcp-Method', 'method')
  const member = NAME_MEMBER[request.method]
  const name = member === undefined ? undefined : request.params?.[member]
  if (typeof name !== 'string') return
  const header = one(headers['mcp-name'])
  if (header === undefined || decodeHeaderValue(header) !== name) throw mismatch('Mcp-Name', `params.${member}`)
}

/** An annotated argument and its header are there together, or neither is. */
export function checkParamHeaders(headers: IncomingHttpHeaders, tool: Tool, args: JsonObject): void {
  for (const { header, path } of annotatedParams(tool.inputSchema)) {
    const raw = one(headers[`mcp-param-${header.toLowerCase()}`])
    const value = valueAt(args, path) ?? undefined
    if (raw === undefined && value === undefined) continue
    const decoded = raw === undefined ? undefined : decodeHeaderValue(raw)
    if (decoded === undefined || value === undefined || !headerEquals(decoded, value)) {
      throw mismatch(`Mcp-Param-${header}`, `arguments.${path.join('.')}`)
    }
  }
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header
}

function mismatch(header: string, member: string): RpcError {
  return new RpcError(HEADER_MISMATCH, `Header ${header} is missing, malformed or differs from ${member}`, {
    status: 400,
    data: { header },
  })
}
