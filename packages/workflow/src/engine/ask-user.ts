import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import { templateText } from './render-arguments.ts'
import { StepError } from './step-error.ts'
import type { ElicitationStep } from './workflow.ts'
import type { Answer, Question, StepResult, WorkflowHost } from './workflow-host.ts'

const MAX_ANSWER_LENGTH = 1024 * 1024

export interface Asked {
  readonly result: StepResult
  readonly skipsRemaining: boolean
}

export function questionOf(step: ElicitationStep, scope: JsonObject): Question {
  return {
    step: step.id,
    message: templateText(step.message, scope, `${step.field}.message`),
    schema: (step.definition.schema ?? { type: 'object', properties: {} }) as JsonObject,
  }
}

/** No answer in time counts as canceled. @throws StepError */
export async function askUser(host: WorkflowHost, step: ElicitationStep, run: { scope: JsonObject; signal: AbortSignal }): Promise<Asked> {
  const question = questionOf(step, run.scope)
  const { elicit } = host
  if (!elicit) throw new StepError('the client cannot be asked', { isFinal: true })
  const limit = { clock: host.clock, timeoutMs: step.timeoutMs, what: 'the question', signals: [run.signal] }
  try {
    return judgeAnswer(step, await withTimeLimit(limit, async (signal) => await elicit.call(host, question, signal)))
  } catch (error) {
    run.signal.throwIfAborted()
    if (isThvError(error, 'timeout')) return judgeAnswer(step, { action: 'cancel' })
    throw error instanceof StepError ? error : new StepError(errorMessage(error), { isFinal: true, cause: error })
  }
}

/** The meaning of an answer to the workflow. @throws StepError if it ends it, or does not fit the schema */
export function judgeAnswer(step: ElicitationStep, { action, content = {} }: Answer): Asked {
  if (action === 'accept') {
    if (JSON.stringify(content).length > MAX_ANSWER_LENGTH) throw new StepError('the answer is larger than 1 MiB', { isFinal: true })
    const { problems } = step.schema.check(content)
    if (problems.length > 0) throw new StepError(`the answer does not fit the schema: ${problems.join('; ')}`, { isFinal: true })
    return { result: { status: 'completed', output: { action, content } }, skipsRemaining: false }
  }
  const { definition } = step
  const wanted = action === 'decline' ? definition.onDecline.action : definition.onCancel.action
  if (wanted === 'abort') throw new StepError(action === 'decline' ? 'the user declined' : 'the user did not answer', { isFinal: true })
  return { result: { status: 'completed', output: { action } }, skipsRemaining: wanted === 'skip_remaining' }
}
