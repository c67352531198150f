import type { Workflow } from './workflow.ts'

/** The hints of MCP tools. */
export interface ToolHints {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

export interface JudgedHints {
  readonly annotations: ToolHints
  /** For logs, `validate` and a status. */
  readonly warnings: readonly string[]
}

interface RepeatedCall {
  readonly step: string
  readonly field: string
  readonly tool: string
  readonly retries: number
}

/**
 * The hints of a composite tool: as its tools say, in the worst case, unless the definition says something. A hint that promises more than the
 * tools do is taken back and reported.
 *
 * @param hintsOf hints of a tool, hidden ones too; undefined if it has none, which counts as the worst case
 */
export function workflowAnnotations(workflow: Workflow, hintsOf: (tool: string) => ToolHints | undefined): JudgedHints {
  const calls = callsOf(workflow)
  const hints = calls.map(({ tool }) => hintsOf(tool) ?? {})
  const isReadOnly = hints.every(({ readOnlyHint }) => readOnlyHint === true)
  const derived = {
    readOnlyHint: isReadOnly,
    // A tool that changes nothing destroys nothing; the defaults of MCP are true for the other two.
    destructiveHint: hints.some(({ readOnlyHint, destructiveHint = true }) => readOnlyHint !== true && destructiveHint),
    openWorldHint: hints.some(({ openWorldHint = true }) => openWorldHint),
  }
  const { annotations: said = {} } = workflow.tool
  const warnings: string[] = []
  const judged = {
    readOnlyHint: judge('readOnlyHint', said.readOnlyHint, derived.readOnlyHint, true),
    destructiveHint: judge('destructiveHint', said.destructiveHint, derived.destructiveHint, false),
    openWorldHint: judge('openWorldHint', said.openWorldHint, derived.openWorldHint, false),
  }
  for (const { step, field, tool, retries } of calls) {
    const { destructiveHint, idempotentHint } = hintsOf(tool) ?? {}
    if (retries === 0 || destructiveHint !== true || idempotentHint === true) continue
    warnings.push(`${field}.onError (step ${step}): repeats a tool that is destructive and not idempotent`)
  }
  return { annotations: { ...said, ...judged }, warnings }

  /** @param promise the value that calms a client */
  function judge(name: string, wanted: boolean | undefined, worst: boolean, promise: boolean): boolean {
    if (wanted !== promise || worst === promise) return wanted ?? worst
    warnings.push(`annotations.${name}: ${promise} promises more than the tools of the steps; clients see ${worst}`)
    return worst
  }
}

function callsOf({ steps }: Workflow): RepeatedCall[] {
  return steps.flatMap((step) => {
    if (step.type === 'elicitation') return []
    const { call, definition, field } = step.type === 'forEach' ? step.inner : step
    return [{ step: step.id, field, tool: call.tool, retries: definition.onError.retryCount }]
  })
}
