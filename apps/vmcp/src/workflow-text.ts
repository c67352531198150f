import { ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import { isObject } from '@thv/mcp/json-rpc'
import type { CompositeTool } from '@thv/vmcpconfig/vmcp-config'
import { dryRun, workflowOutline } from '@thv/workflow/dry-run'
import { workflowGraph } from '@thv/workflow/graph'
import { compileWorkflows } from './compose/composite-offers.ts'

export interface WorkflowFlags {
  readonly config?: string
  readonly params?: string
  readonly dryRun?: boolean
  readonly graph?: boolean
}

/** One composite tool of a file for people: its plan, or its graph. Pure. */
export function workflowText(tools: readonly CompositeTool[], name: string, { params, dryRun: isDry, graph }: WorkflowFlags): string {
  if (isDry === graph) throw new ThvError('usage', 'expects one of --dry-run and --graph')
  if (graph === true && params !== undefined) throw new ThvError('usage', '--params is for --dry-run')
  const found = compileWorkflows(tools).find((each) => each.name === name || each.workflow.tool.name === name)
  if (found === undefined) throw new ThvError('usage', `the file has no composite tool ${name}; it has ${namesOf(tools)}`)
  if (graph === true) return workflowGraph(found.workflow)
  return params === undefined ? workflowOutline(found.workflow) : dryRun(found.workflow, paramsOf(params))
}

function namesOf(tools: readonly CompositeTool[]): string {
  return tools.length === 0 ? 'none' : tools.map(({ name }) => name).join(', ')
}

function paramsOf(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ThvError('usage', '--params is not JSON')
  }
  if (!isObject(value)) throw new ThvError('usage', '--params expects a JSON object')
  return value as JsonObject
}
