import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import type { CompositeTool } from '@thv/vmcpconfig/vmcp-config'
import { type ToolHints, workflowAnnotations } from '@thv/workflow/annotations'
import { checkWorkflow } from '@thv/workflow/check-workflow'
import type { Workflow } from '@thv/workflow/workflow'
import type { Route, View } from '../aggregate/aggregate.ts'
import { legalName } from '../aggregate/legal-names.ts'
import { certainTools } from './certain-tools.ts'
import { stepTargets } from './step-targets.ts'

/** A composite tool and the name that clients see. */
export interface NamedWorkflow {
  readonly name: string
  readonly workflow: Workflow
}

/** A composite tool whose tools are all there. */
export interface CompositeOffer extends NamedWorkflow {
  readonly item: JsonObject
  /** By the names that the steps use. */
  readonly targets: ReadonlyMap<string, Route>
}

export interface CompositeOffers {
  readonly offered: ReadonlyMap<string, CompositeOffer>
  readonly leftOut: readonly { readonly name: string; readonly reason: string }[]
  /** By the name of one that is left out: the tools that are not there, and those that it calls in any case. */
  readonly missing: ReadonlyMap<string, readonly string[]>
  readonly warnings: readonly string[]
}

export const NO_COMPOSITES: CompositeOffers = { offered: new Map(), leftOut: [], missing: new Map(), warnings: [] }

/** Compiles the composite tools of a file that was checked already. */
export function compileWorkflows(tools: readonly CompositeTool[]): readonly NamedWorkflow[] {
  const taken = new Set(tools.map(({ name }) => name))
  return tools.map((tool, index) => {
    const { workflow, problems } = checkWorkflow(tool, `compositeTools[${index}]`)
    if (workflow === undefined) throw new TypeError(problems.map(({ message }) => message).join('; '))
    const name = legalName(tool.name, (other) => taken.has(other))
    taken.add(name)
    return { name, workflow }
  })
}

/** The composite tools that the tools of a view allow. Pure. */
export function offerComposites(view: View, workflows: readonly NamedWorkflow[]): CompositeOffers {
  if (workflows.length === 0) return NO_COMPOSITES
  const targetOf = stepTargets(view)
  const offered = new Map<string, CompositeOffer>()
  const leftOut: { name: string; reason: string }[] = []
  const lacking = new Map<string, readonly string[]>()
  const warnings: string[] = []
  for (const { name, workflow } of workflows) {
    const targets = new Map<string, Route>()
    const missing = toolsOf(workflow).filter((tool) => {
      const route = targetOf(tool)
      if (route !== undefined) targets.set(tool, route)
      return route === undefined
    })
    if (missing.length > 0) {
      leftOut.push({ name, reason: `no backend offers ${missing.join(', ')}` })
      lacking.set(name, [...new Set([...missing, ...certainTools(workflow)])])
      continue
    }
    const judged = workflowAnnotations(workflow, (tool) => hintsOf(targets.get(tool)))
    warnings.push(...judged.warnings.map((warning) => `${name}: ${warning}`))
    if (name !== workflow.tool.name) warnings.push(`${workflow.tool.name}: is offered as ${name}`)
    offered.set(name, { name, workflow, targets, item: itemOf(name, workflow, judged.annotations) })
  }
  return { offered, leftOut, missing: lacking, warnings }
}

function itemOf(name: string, { tool, outputSchema }: Workflow, annotations: ToolHints): JsonObject {
  const { description, parameters } = tool
  const inputSchema = parameters ?? { type: 'object', properties: {}, additionalProperties: false }
  return { name, description, inputSchema, ...(outputSchema && { outputSchema }), annotations }
}

function toolsOf({ steps }: Workflow): readonly string[] {
  const names = steps.flatMap((step) => {
    if (step.type === 'elicitation') return []
    return [step.type === 'forEach' ? step.inner.call.tool : step.call.tool]
  })
  return [...new Set(names)]
}

/** Members of the wrong type count as not said. */
function hintsOf(route: Route | undefined): ToolHints | undefined {
  const said = route?.item['annotations']
  if (!isObject(said)) return undefined
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = said
  return {
    ...(typeof readOnlyHint === 'boolean' && { readOnlyHint }),
    ...(typeof destructiveHint === 'boolean' && { destructiveHint }),
    ...(typeof idempotentHint === 'boolean' && { idempotentHint }),
    ...(typeof openWorldHint === 'boolean' && { openWorldHint }),
  }
}
