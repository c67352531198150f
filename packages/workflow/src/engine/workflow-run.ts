import { isThvError } from '@thv/kernel/errors'
import type { Json, JsonObject } from '@thv/kernel/json'
import { askUser, judgeAnswer, questionOf } from './ask-user.ts'
import { callStep } from './call-step.ts'
import { NO_ITERATIONS, runForEach } from './for-each.ts'
import { mapOutput } from './map-output.ts'
import { conditionHolds } from './render-arguments.ts'
import { StepError } from './step-error.ts'
import type { ElicitationStep, Workflow, WorkflowStep } from './workflow.ts'
import type { Answer, StepResult, WorkflowHost } from './workflow-host.ts'
import { failed, MAX_OUTPUTS_LENGTH, OUTPUTS_TOO_LARGE, type SuspendedWorkflow, type WorkflowOutcome } from './workflow-outcome.ts'

export interface WorkflowRunOptions {
  readonly host: WorkflowHost
  readonly params: JsonObject
  readonly id: string
  readonly maxParallelSteps: number
  readonly suspends: boolean
  readonly resume?: { readonly state: SuspendedWorkflow; readonly answers: Readonly<Record<string, Answer>> }
}

const MAX_STATE_LENGTH = 1024 * 1024

/** One run: each step starts as soon as those it depends on are done and a place is free. */
export class WorkflowRun {
  readonly #workflow: Workflow
  readonly #options: WorkflowRunOptions
  readonly #results = new Map<string, StepResult>()
  readonly #running = new Map<string, Promise<void>>()
  /** Steps that have started, by id. */
  readonly #stepsBegun = new Map<string, number>()
  readonly #failure = new AbortController()
  readonly #startedAt: number
  readonly #begun: number
  #waiting: WorkflowStep[]
  /** Ready to be asked, once nothing runs. */
  #questions: ElicitationStep[] = []
  #skipsRemaining = false
  #lastStep: string | undefined
  #outputs = 0

  constructor(workflow: Workflow, options: WorkflowRunOptions) {
    const { resume, host } = options
    this.#workflow = workflow
    this.#options = options
    this.#waiting = [...workflow.steps]
    this.#startedAt = resume?.state.startedAt ?? host.clock.now()
    this.#begun = host.clock.monotonic()
  }

  async start(signal: AbortSignal): Promise<WorkflowOutcome> {
    const stop = AbortSignal.any([signal, this.#failure.signal])
    const { resume } = this.#options
    if (resume) this.#restore(resume.state, resume.answers)
    for (;;) {
      if (!this.#failure.signal.aborted) this.#startReady(stop)
      if (this.#running.size === 0) break
      await Promise.race(this.#running.values())
    }
    signal.throwIfAborted()
    if (this.#failure.signal.aborted) return this.#failureOutcome()
    if (this.#questions.length > 0) return this.#suspend()
    return this.#finish()
  }

  #restore({ results, lastStep, questions, askedAt }: SuspendedWorkflow, answers: Readonly<Record<string, Answer>>): void {
    for (const [id, result] of Object.entries(results)) this.#results.set(id, result)
    this.#lastStep = lastStep
    const isLate = (step: ElicitationStep) => this.#options.host.clock.now() - askedAt > step.timeoutMs
    for (const step of this.#workflow.steps) {
      if (step.type !== 'elicitation' || !questions.includes(step.id)) continue
      const answer = isLate(step) ? undefined : answers[step.id]
      this.#settle(step, () => judgeAnswer(step, answer ?? { action: 'cancel' }))
    }
    this.#waiting = this.#waiting.filter(({ id }) => !this.#results.has(id))
  }

  /** Questions of a run that suspends wait until nothing runs; so does every step that could start meanwhile. */
  #startReady(signal: AbortSignal): void {
    if (this.#skipsRemaining) return
    const ready = this.#waiting.filter((step) => step.definition.dependsOn.every((id) => this.#results.has(id)))
    for (const step of ready) {
      if (this.#failure.signal.aborted || this.#skipsRemaining) return
      const isAsked = step.type === 'elicitation' && this.#options.suspends
      if (isAsked ? this.#prepareQuestion(step) : this.#questions.length > 0) continue
      if (this.#running.size >= this.#options.maxParallelSteps) return
      this.#waiting = this.#waiting.filter((other) => other !== step)
      if (this.#results.has(step.id)) continue
      const work = this.#run(step, signal).finally(() => this.#running.delete(step.id))
      this.#running.set(step.id, work)
    }
  }

  /** Whether the question is put aside. One whose condition is false runs, and is skipped, like any step. */
  #prepareQuestion(step: ElicitationStep): boolean {
    if (this.#questions.includes(step)) return true
    try {
      if (!conditionHolds(step.condition, this.#scope(step.ancestors), step.field)) return false
    } catch {
      return false // it fails as a step
    }
    this.#questions.push(step)
    return true
  }

  async #run(step: WorkflowStep, signal: AbortSignal): Promise<void> {
    const scope = this.#scope(step.ancestors)
    try {
      signal.throwIfAborted()
      if (!conditionHolds(step.condition, scope, step.field)) {
        this.#record(step, { status: 'skipped', output: substituteOf(step) })
        return
      }
      this.#tellStart(step)
      if (step.type === 'elicitation') {
        const asked = await askUser(this.#options.host, step, { scope, signal })
        this.#settle(step, () => asked)
        return
      }
      this.#record(step, await this.#call(step, scope, signal))
    } catch (error) {
      this.#fail(step, error, signal)
    }
  }

  async #call(step: Exclude<WorkflowStep, ElicitationStep>, scope: JsonObject, signal: AbortSignal): Promise<StepResult> {
    const { host } = this.#options
    if (step.type === 'tool') {
      const { onError } = step.definition
      return await callStep(host, { step: step.id, plan: step.call, scope, onError, timeoutMs: step.timeoutMs }, signal)
    }
    const over = new AbortController()
    const timer = host.clock.setTimer(step.timeoutMs, () =>
      over.abort(new StepError(`took longer than ${step.timeoutMs} ms`, { isFinal: true })),
    )
    try {
      return await runForEach(host, step, { scope, signal: AbortSignal.any([signal, over.signal]) })
    } finally {
      timer.cancel()
    }
  }

  #settle(step: ElicitationStep, answer: () => ReturnType<typeof judgeAnswer>): void {
    try {
      const { result, skipsRemaining } = answer()
      this.#record(step, result)
      if (skipsRemaining) this.#skipsRemaining = true
    } catch (error) {
      this.#fail(step, error, this.#failure.signal)
    }
  }

  #record(step: WorkflowStep, result: StepResult): void {
    this.#outputs += JSON.stringify(result).length
    if (this.#outputs > MAX_OUTPUTS_LENGTH) {
      this.#end(step, new StepError(OUTPUTS_TOO_LARGE, { isFinal: true }))
      return
    }
    this.#results.set(step.id, result)
    this.#tellEnd(step, result.status, result.error)
    if (result.status === 'completed') this.#lastStep = step.id
    this.#options.host.progress?.(this.#results.size, this.#workflow.steps.length)
  }

  #fail(step: WorkflowStep, error: unknown, signal: AbortSignal): void {
    if (signal.aborted && !(error instanceof StepError)) {
      // Another step or the caller ended the run.
      this.#tellEnd(step, 'failed', 'was canceled')
      return
    }
    if (!(error instanceof StepError) && !isThvError(error)) {
      this.#tellEnd(step, 'failed', 'internal error')
      this.#failure.abort(error)
      return
    }
    if (step.definition.onError.action !== 'continue') this.#end(step, error)
    else this.#record(step, { status: 'failed', output: substituteOf(step), error: error.message })
  }

  #end(step: WorkflowStep, error: Error): void {
    this.#tellEnd(step, 'failed', error.message)
    if (!this.#failure.signal.aborted) this.#failure.abort(new FailedStep(step.id, error))
  }

  #tellStart(step: WorkflowStep): void {
    const { host, id } = this.#options
    this.#stepsBegun.set(step.id, host.clock.monotonic())
    host.observe?.({ type: 'workflow_step_started', id, step: step.id })
  }

  #tellEnd(step: WorkflowStep, status: StepResult['status'], error: string | undefined): void {
    const { host, id } = this.#options
    const begun = this.#stepsBegun.get(step.id)
    const durationMs = begun === undefined ? 0 : host.clock.monotonic() - begun
    host.observe?.({ type: `workflow_step_${status}`, id, step: step.id, durationMs, ...(error !== undefined && { error }) })
  }

  #failureOutcome(): WorkflowOutcome {
    const reason: unknown = this.#failure.signal.reason
    if (!(reason instanceof FailedStep)) throw reason
    const { steps } = this.#workflow
    const number = steps.findIndex(({ id }) => id === reason.step) + 1
    return failed(`step ${number} of ${steps.length}: ${reason.message}`, reason.step)
  }

  #suspend(): WorkflowOutcome {
    const { host, params, id, resume } = this.#options
    const [first] = this.#questions
    let questions: ReturnType<typeof questionOf>[]
    try {
      questions = this.#questions.map((step) => questionOf(step, this.#scope(step.ancestors)))
    } catch (error) {
      if (!(error instanceof StepError)) throw error
      return failed(error.message, first?.id)
    }
    const state: SuspendedWorkflow = {
      id,
      params,
      results: Object.fromEntries(this.#results),
      lastStep: this.#lastStep,
      startedAt: this.#startedAt,
      askedAt: host.clock.now(),
      elapsedMs: (resume?.state.elapsedMs ?? 0) + host.clock.monotonic() - this.#begun,
      questions: questions.map(({ step }) => step),
    }
    if (JSON.stringify(state).length > MAX_STATE_LENGTH)
      return failed('the results so far are larger than 1 MiB, too large to wait for an answer', first?.id)
    for (const step of this.#questions) this.#tellStart(step)
    return { kind: 'suspended', state, questions }
  }

  #finish(): WorkflowOutcome {
    for (const step of this.#waiting) {
      this.#results.set(step.id, { status: 'skipped', output: substituteOf(step) })
      this.#tellEnd(step, 'skipped', undefined)
    }
    const { output, steps } = this.#workflow
    if (!output)
      return { kind: 'completed', result: lastResult(this.#lastStep === undefined ? undefined : this.#results.get(this.#lastStep)) }
    try {
      const mapped = mapOutput(this.#workflow, this.#scope(new Set(steps.map(({ id }) => id))))
      return { kind: 'completed', result: { content: [{ type: 'text', text: JSON.stringify(mapped) }], structuredContent: mapped } }
    } catch (error) {
      if (!(error instanceof StepError)) throw error
      return failed(error.message)
    }
  }

  /** The data of templates: only steps that are certainly done, so that a run does not depend on chance. */
  #scope(visible: ReadonlySet<string>): JsonObject {
    const { params, id, host } = this.#options
    const steps: Record<string, Json> = {}
    for (const [step, { status, output, content, error }] of this.#results) {
      if (!visible.has(step)) continue
      steps[step] = { status, output, ...(content && { content }), ...(error !== undefined && { error }) }
    }
    const workflow = {
      id,
      duration_ms: Math.round(host.clock.monotonic() - this.#begun),
      step_count: this.#workflow.steps.length,
      status: 'running',
      start_time: new Date(this.#startedAt).toISOString(),
    }
    return { params, steps, workflow }
  }
}

class FailedStep extends Error {
  readonly step: string

  constructor(step: string, cause: Error) {
    super(cause.message, { cause })
    this.step = step
  }
}

function substituteOf(step: WorkflowStep): Json {
  const { defaultResults } = step.definition
  if (defaultResults) return defaultResults as JsonObject
  return step.type === 'forEach' ? NO_ITERATIONS : {}
}

/** Without `output`: what the step that ended last returned. */
function lastResult(result: StepResult | undefined) {
  const content = result?.content ?? [{ type: 'text', text: JSON.stringify(result?.output ?? {}) }]
  return { content, ...(result?.structuredContent && { structuredContent: result.structuredContent }) }
}
