import { createBackoff } from '@thv/kernel/backoff'
import { abortable, withTimeLimit } from '@thv/kernel/deadline'
import { parseDuration } from '@thv/kernel/duration'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import type { CanonicalOnError } from '@thv/resources/shared/composite/composite-tool-normalise'
import { renderArguments } from './render-arguments.ts'
import { StepError } from './step-error.ts'
import { errorText, outputOf } from './tool-output.ts'
import type { CallPlan } from './workflow.ts'
import type { StepResult, ToolResult, WorkflowHost } from './workflow-host.ts'

/** Delays grow to at most this many times the first one. */
const MAX_DELAY_FACTOR = 60

export interface StepCall {
  readonly step: string
  readonly iteration?: number
  readonly plan: CallPlan
  readonly scope: JsonObject
  readonly onError: CanonicalOnError
  /** For all tries together. */
  readonly timeoutMs: number
}

/** Calls a tool, again as often as `onError` says. @throws StepError, or the reason of the signal */
export async function callStep(host: WorkflowHost, call: StepCall, signal: AbortSignal): Promise<StepResult> {
  const args = renderArguments(call.plan, call.scope, host.inputSchema?.(call.plan.tool))
  const limit = { clock: host.clock, timeoutMs: call.timeoutMs, what: 'the step', signals: [signal] }
  try {
    return await withTimeLimit(limit, async (inner) => await tryOften(host, { call, args }, inner))
  } catch (error) {
    signal.throwIfAborted()
    if (isThvError(error, 'timeout')) throw new StepError(`took longer than ${call.timeoutMs} ms`, { isFinal: true, cause: error })
    throw error
  }
}

async function tryOften(
  host: WorkflowHost,
  { call, args }: { call: StepCall; args: JsonObject },
  signal: AbortSignal,
): Promise<StepResult> {
  const { onError, step, iteration, plan } = call
  const baseMs = parseDuration(onError.retryDelay)
  const backoff = createBackoff({ baseMs, maxMs: baseMs * MAX_DELAY_FACTOR, ...(host.random && { random: host.random }) })
  for (let attempt = 1; ; attempt++) {
    try {
      const request = { step, tool: plan.tool, arguments: args, attempt, ...(iteration !== undefined && { iteration }) }
      return resultOf(await abortable(host.callTool(request, signal), signal))
    } catch (error) {
      signal.throwIfAborted()
      const failure = error instanceof StepError ? error : new StepError(errorMessage(error), { isFinal: false, cause: error })
      if (failure.isFinal || attempt > onError.retryCount) throw failure
      await host.clock.sleep(backoff.next(), signal)
    }
  }
}

function resultOf(result: ToolResult): StepResult {
  if (result.isError) throw new StepError(errorText(result), { isFinal: false })
  const { content, structuredContent } = result
  return { status: 'completed', output: outputOf(result), content, ...(structuredContent && { structuredContent }) }
}
