import { INVALID_PARAMS, isObject, type JsonObject, RpcError } from '../wire/json-rpc.ts'
import type { Call, Tool } from './call.ts'
import { page } from './paging.ts'
import { complete, getPrompt, listPrompts } from './prompts.ts'
import { RESOURCE_TEMPLATES, RESOURCES, readResource } from './resources.ts'

const HANDLERS: Readonly<Record<string, (call: Call) => JsonObject | Promise<JsonObject>>> = {
  'tools/list': (call) => page('tools', visibleTools(call).map(describeTool), call.params, pageSize(call)),
  'tools/call': async (call) => runTool(findTool(call), call),
  'prompts/list': (call) => page('prompts', listPrompts(), call.params, pageSize(call)),
  'prompts/get': getPrompt,
  'resources/list': (call) => page('resources', RESOURCES, call.params, pageSize(call)),
  'resources/templates/list': (call) => page('resourceTemplates', RESOURCE_TEMPLATES, call.params, pageSize(call)),
  'resources/read': readResource,
  'completion/complete': (call) => complete(call.params),
}

export function isFeature(method: string): boolean {
  return Object.hasOwn(HANDLERS, method)
}

/** Runs one of the requests that both eras know. */
export async function runFeature(method: string, call: Call): Promise<JsonObject> {
  const handler = HANDLERS[method]
  if (!handler) throw new Error(`not a feature request: ${method}`)
  return handler(call)
}

/** Throws -32602 for a name that this era does not have. */
export function findTool(call: Call): Tool {
  const { name, arguments: args } = call.params
  const tool = typeof name === 'string' ? call.world.tools.get(name) : undefined
  if (!tool || !inEra(tool, call)) throw new RpcError(INVALID_PARAMS, `Unknown tool: ${String(name)}`)
  if (args !== undefined && !isObject(args)) throw new RpcError(INVALID_PARAMS, 'arguments must be an object')
  return tool
}

/** Runs it here and now, also the tools that could become a task. */
async function runTool(tool: Tool, call: Call): Promise<JsonObject> {
  const prepared = (await tool.prepare?.(call)) ?? {}
  return tool.run({ ...call, args: { ...call.args, ...prepared } })
}

/** Always in the same order: models cache their prompts by it. */
function visibleTools(call: Call): Tool[] {
  return [...call.world.tools.values()].filter((tool) => inEra(tool, call)).sort((a, b) => (a.name < b.name ? -1 : 1))
}

function inEra(tool: Tool, call: Call): boolean {
  return tool.era === undefined || tool.era === call.era
}

function describeTool({ run, prepare, era, task, ...listed }: Tool): JsonObject {
  return listed
}

function pageSize(call: Call): number | undefined {
  return call.world.options.pageSize
}
