import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Middleware } from '../pipeline/middleware.ts'
import type { MessageContext } from '../pipeline/request-context.ts'
import { compileToolNames, type ToolNames, type ToolSelection } from './tool-names.ts'

export interface ToolFilterDeps {
  /** Gets one message for each entry that is probably a mistake. */
  warn(message: string): void
}

/** Shows and renames the tools of an MCPToolConfig: in `tools/list`, and for calls. Throws `run_config_invalid`. */
export function createToolFilter(selection: ToolSelection, deps: ToolFilterDeps): Middleware {
  const names = compileToolNames(selection)
  for (const warning of names.warnings) deps.warn(warning)
  return {
    name: 'tool-filter',
    message: (context) => checkCall(names, context),
    edits: [METHODS.toolsList],
    item: (_context, tool) => visibleTool(names, tool),
  }
}

/** A hidden tool is rejected as the server itself rejects a tool that it does not have. */
function checkCall(names: ToolNames, context: MessageContext): Rejection | undefined {
  const { outgoing } = context
  if (outgoing.method !== METHODS.toolsCall) return undefined
  // No call: but a lenient server might carry it out.
  if (outgoing.kind !== 'request') return UNKNOWN_TOOL
  const visible = outgoing.message.params?.['name']
  const actual = typeof visible === 'string' ? names.actualOf(visible) : undefined
  if (actual === undefined) return UNKNOWN_TOOL
  if (actual !== visible) context.outgoing = withName(outgoing, actual)
  return undefined
}

const UNKNOWN_TOOL: Rejection = reject('invalid_params', { detail: 'there is no such tool', inBand: true })

function withName(request: ParsedRequest, name: string): ParsedRequest {
  const message = { ...request.message, params: { ...request.message.params, name } }
  return { ...request, message, text: spliceMember(request.text, ['params', 'name'], JSON.stringify(name)) }
}

/** A tool without a name is hidden: no filter entry can allow it. */
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
