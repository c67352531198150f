import { randomUUID } from 'node:crypto'
import { withTimeLimit } from '@thv/kernel/deadline'
import { parseDuration } from '@thv/kernel/duration'
import { isThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import type { Workflow } from './workflow.ts'
import type { Answer, WorkflowHost } from './workflow-host.ts'
import { failed, type SuspendedWorkflow, type WorkflowOutcome } from './workflow-outcome.ts'
import { WorkflowRun } from './workflow-run.ts'

export type { SuspendedWorkflow, WorkflowOutcome } from './workflow-outcome.ts'

export interface RunOptions {
  readonly host: WorkflowHost
  readonly params: JsonObject
  readonly signal: AbortSignal
  /** `.workflow.id`; a random one unless given. */
  readonly id?: string
  /** 10 unless given. A loop counts as one. */
  readonly maxParallelSteps?: number
  /** `suspend`: a question ends the run, which then goes on with `resume`, in any process. `wait`, the default: `host.elicit` is awaited. */
  readonly asks?: 'wait' | 'suspend'
  readonly resume?: { readonly state: SuspendedWorkflow; readonly answers: Readonly<Record<string, Answer>> }
}

/** Runs a workflow to its end, or to its next question. Rejects with the reason of the caller's signal only. */
export async function runWorkflow(workflow: Workflow, options: RunOptions): Promise<WorkflowOutcome> {
  const { host, signal, resume } = options
  const checked = resume ? { value: resume.state.params, problems: [] } : parametersOf(workflow, options.params)
  if (checked.problems.length > 0) return { kind: 'invalid_params', problems: checked.problems }
  const run = new WorkflowRun(workflow, {
    host,
    params: checked.value as JsonObject,
    id: resume?.state.id ?? options.id ?? randomUUID(),
    maxParallelSteps: options.maxParallelSteps ?? 10,
    suspends: options.asks === 'suspend',
    ...(resume && { resume }),
  })
  const timeoutMs = Math.max(0, parseDuration(workflow.tool.timeout) - (resume?.state.elapsedMs ?? 0))
  try {
    return await withTimeLimit(
      { clock: host.clock, timeoutMs, what: 'the workflow', signals: [signal] },
      async (inner) => await run.start(inner),
    )
  } catch (error) {
    signal.throwIfAborted()
    if (!isThvError(error, 'timeout')) throw error
    return failed(`took longer than ${workflow.tool.timeout}`)
  }
}

function parametersOf({ parameters }: Workflow, params: JsonObject) {
  if (parameters) return parameters.check(params)
  const [name] = Object.keys(params)
  return { value: params, problems: name === undefined ? [] : [`the tool takes no parameters (${name})`] }
}
