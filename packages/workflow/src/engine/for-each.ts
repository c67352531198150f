import type { Json, JsonObject } from '@thv/kernel/json'
import { callStep } from './call-step.ts'
import { conditionHolds, templateValue } from './render-arguments.ts'
import { StepError } from './step-error.ts'
import type { ForEachStep } from './workflow.ts'
import type { StepResult, WorkflowHost } from './workflow-host.ts'
import { MAX_OUTPUTS_LENGTH, OUTPUTS_TOO_LARGE } from './workflow-outcome.ts'

interface Iteration {
  readonly index: number
  readonly item: Json
  readonly status: StepResult['status']
  readonly output: Json
  readonly error?: string
}

export const NO_ITERATIONS: JsonObject = { iterations: [], count: 0, completed: 0, failed: 0 }

/** Calls a tool for each item, `maxParallel` at a time. @throws StepError if an item fails and the loop does not continue */
export async function runForEach(
  host: WorkflowHost,
  step: ForEachStep,
  run: { scope: JsonObject; signal: AbortSignal },
): Promise<StepResult> {
  const items = itemsOf(step, run.scope)
  const over = new AbortController()
  const signal = AbortSignal.any([run.signal, over.signal])
  const iterations = new Array<Iteration>(items.length)
  let next = 0
  let length = 0
  const worker = async () => {
    while (next < items.length && !signal.aborted) {
      const index = next++
      const iteration = await iterate(host, step, { scope: run.scope, signal, index, item: items[index] ?? null })
      // Counted here and not at the end of the loop: 1,000 large results would not fit into memory.
      length += JSON.stringify(iteration).length
      if (length > MAX_OUTPUTS_LENGTH) throw new StepError(OUTPUTS_TOO_LARGE, { isFinal: true })
      iterations[index] = iteration
    }
  }
  const workers = Array.from({ length: Math.min(step.definition.maxParallel, items.length) }, async () => {
    try {
      await worker()
    } catch (error) {
      // Nothing is left running when the step ends.
      over.abort(error)
    }
  })
  await Promise.all(workers)
  run.signal.throwIfAborted()
  if (over.signal.aborted) throw over.signal.reason
  return { status: 'completed', output: summaryOf(iterations) }
}

function summaryOf(iterations: readonly Iteration[]): JsonObject {
  const failed = iterations.filter(({ status }) => status === 'failed').length
  return { iterations: iterations as unknown as Json, count: iterations.length, completed: iterations.length - failed, failed }
}

/** A list, or its JSON text. */
function itemsOf({ collection, definition, field }: ForEachStep, scope: JsonObject): readonly Json[] {
  const value = templateValue(collection, scope, `${field}.collection`)
  const items = typeof value === 'string' ? parsed(value) : value
  if (!Array.isArray(items)) throw new StepError('collection: must give a list', { isFinal: true })
  if (items.length > definition.maxIterations) {
    throw new StepError(`collection: has ${items.length} items, more than maxIterations (${definition.maxIterations})`, { isFinal: true })
  }
  return items as readonly Json[]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface Turn {
  readonly scope: JsonObject
  readonly signal: AbortSignal
  readonly index: number
  readonly item: Json
}

/** The inner `onError` decides first, then that of the loop. */
async function iterate(host: WorkflowHost, step: ForEachStep, turn: Turn): Promise<Iteration> {
  const { index, item, signal } = turn
  const { inner, definition } = step
  const scope = { ...turn.scope, forEach: { [definition.itemVar]: item, index } }
  const substitute = (inner.definition.defaultResults ?? {}) as JsonObject
  try {
    if (!conditionHolds(inner.condition, scope, inner.field)) return { index, item, status: 'skipped', output: substitute }
    const call = { step: step.id, iteration: index, plan: inner.call, scope, onError: inner.definition.onError, timeoutMs: inner.timeoutMs }
    const { status, output } = await callStep(host, call, signal)
    return { index, item, status, output }
  } catch (error) {
    if (!(error instanceof StepError)) throw error
    const continues = inner.definition.onError.action === 'continue' || definition.onError.action === 'continue'
    if (!continues) throw new StepError(`item ${index}: ${error.message}`, { isFinal: true, cause: error })
    return { index, item, status: 'failed', output: substitute, error: error.message }
  }
}
