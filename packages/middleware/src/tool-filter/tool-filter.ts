import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { reject } from '@thv/mcp/wire-errors'
import type { Middleware, Refusal } from '../pipeline/pipeline.ts'
import type { RequestContext } from '../pipeline/request-context.ts'
import type { ToolNames } from './tool-names.ts'

/** Filter and overrides of an MCPToolConfig: what clients see in `tools/list`, and what they can call. */
export function toolFilter(names: ToolNames): Middleware {
  return {
    name: 'tool-filter',
    request: (context) => checkCall(names, context),
    edits: [METHODS.toolsList],
    item: (_caller, tool) => visibleTool(names, tool),
  }
}

/** A hidden tool is refused just as the server would refuse one that it does not have. */
function checkCall(names: ToolNames, context: RequestContext): Refusal | undefined {
  const { outgoing } = context
  if (outgoing.kind !== 'request' || outgoing.method !== METHODS.toolsCall) return undefined
  const visible = outgoing.message.params?.['name']
  const actual = typeof visible === 'string' ? names.actualOf(visible) : undefined
  if (actual === undefined) return UNKNOWN_TOOL
  if (actual !== visible) context.outgoing = withName(outgoing, actual)
  return undefined
}

const UNKNOWN_TOOL: Refusal = { at: 'inBand', rejection: reject('invalid_params', { detail: 'there is no such tool' }) }

function withName(request: ParsedRequest, name: string): ParsedRequest {
  const message = { ...request.message, params: { ...request.message.params, name } }
  return { ...request, message, text: spliceMember(request.text, ['params', 'name'], JSON.stringify(name)) }
}

/** Of a tool without a name nobody can tell whether it is to be seen: it is not. */
function visibleTool(names: ToolNames, tool: JsonObject): JsonObject | undefined {
  const actual = tool['name']
  const visible = typeof actual === 'string' ? names.visibleOf(actual) : undefined
  if (typeof actual !== 'string' || visible === undefined) return undefined
  const override = names.overrides.get(actual)
  if (override === undefined) return tool
  const { description = tool['description'], annotations } = override
  return {
    ...tool,
    name: visible,
    ...(description !== undefined && { description }),
    ...(annotations !== undefined && { annotations: { ...(isObject(tool['annotations']) && tool['annotations']), ...annotations } }),
  }
}
