import { randomUUID } from 'node:crypto'
import { withTimeLimit } from '@thv/kernel/deadline'
import { parseDuration } from '@thv/kernel/duration'
import { isThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import type { Workflow } from './workflow.ts'
import type { Answer, WorkflowEvent, WorkflowHost } from './workflow-host.ts'
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
  const id = resume?.state.id ?? options.id ?? randomUUID()
  const run = new WorkflowRun(workflow, {
    host,
    params: checked.value as JsonObject,
    id,
    maxParallelSteps: options.maxParallelSteps ?? 10,
    suspends: options.asks === 'suspend',
    ...(resume && { resume }),
  })
  const begun = host.clock.monotonic()
  const tell = (type: WorkflowEvent['type'], error?: string) =>
    host.observe?.({ type, id, durationMs: host.clock.monotonic() - begun, ...(error !== undefined && { error }) })
  if (!resume) host.observe?.({ type: 'workflow_started', id })
  const timeoutMs = Math.max(0, parseDuration(workflow.tool.timeout) - (resume?.state.elapsedMs ?? 0))
  try {
    const outcome = await withTimeLimit(
      { clock: host.clock, timeoutMs, what: 'the workflow', signals: [signal] },
      async (inner) => await run.start(inner),
    )
    if (outcome.kind === 'completed') tell('workflow_completed')
    if (outcome.kind === 'failed') tell('workflow_failed', outcome.message)
    return outcome
  } catch (error) {
    const isLate = !signal.aborted && isThvError(error, 'timeout')
    const message = `took longer than ${workflow.tool.timeout}`
    if (isLate) tell('workflow_timed_out', message)
    else tell('workflow_failed', signal.aborted ? 'was canceled' : 'internal error')
    if (!isLate) throw signal.aborted ? signal.reason : error
    return failed(message)
  }
}

function parametersOf({ parameters }: Workflow, params: JsonObject) {
  if (parameters) return parameters.check(params)
  const [name] = Object.keys(params)
  return { value: params, problems: name === undefined ? [] : [`the tool takes no parameters (${name})`] }
}
