import { compact, isRecord, type ProblemList, unify } from '../../schema/normalize.ts'
import { reportDependencies } from './composite-dependencies.ts'
import { type CanonicalOutput, normaliseOutput } from './composite-output.ts'
import type { CompositeInnerStep, CompositeOnError, CompositeStep } from './composite-step.ts'
import type { CompositeTool } from './composite-tool.ts'

export const DEFAULT_TOOL_TIMEOUT = '30m'
export const DEFAULT_STEP_TIMEOUT = '5m'
export const DEFAULT_RETRY_DELAY = '1s'
export const DEFAULT_ITEM_VAR = 'item'
export const DEFAULT_MAX_PARALLEL = 10
export const DEFAULT_MAX_ITERATIONS = 100

/** A failing step is tried again `retryCount` times with any action; then `continue` goes on, `abort` and `retry` end the tool. */
export interface CanonicalOnError {
  action: 'abort' | 'continue' | 'retry'
  retryCount: number
  retryDelay: string
}

interface CommonStep {
  condition?: string
  defaultResults?: Record<string, unknown>
  timeout: string
  onError: CanonicalOnError
}

interface OuterStep extends CommonStep {
  id: string
  dependsOn: string[]
}

export interface CanonicalToolStep extends OuterStep {
  type: 'tool'
  tool: string
  arguments: Record<string, unknown>
}

type AnswerAction = NonNullable<NonNullable<CompositeStep['onDecline']>['action']>

export interface CanonicalElicitationStep extends OuterStep {
  type: 'elicitation'
  message: string
  schema?: Record<string, unknown>
  onDecline: { action: AnswerAction }
  onCancel: { action: AnswerAction }
}

/** The `onError` of the loop decides what the failure of one item means to the others. */
export interface CanonicalForEachStep extends OuterStep {
  type: 'forEach'
  collection: string
  itemVar: string
  maxParallel: number
  maxIterations: number
  step: CanonicalInnerStep
}

export interface CanonicalInnerStep extends CommonStep {
  id?: string
  type: 'tool'
  tool: string
  arguments: Record<string, unknown>
}

export type CanonicalCompositeStep = CanonicalToolStep | CanonicalElicitationStep | CanonicalForEachStep

/** `failureMode` is gone: it has become the action of every step that had none. */
export interface CanonicalCompositeTool {
  name: string
  description: string
  parameters?: Record<string, unknown>
  annotations?: NonNullable<CompositeTool['annotations']>
  timeout: string
  steps: CanonicalCompositeStep[]
  output?: CanonicalOutput
}

/** @param field path of the tool, for the problems: `spec` or `spec.config.compositeTools[0]` */
export function normaliseCompositeTool(problems: ProblemList, field: string, tool: CompositeTool): CanonicalCompositeTool {
  const failureMode = tool.failureMode ?? 'abort'
  const steps = tool.steps.map((step, index) => canonicalStep({ problems, field: `${field}.steps[${index}]`, failureMode }, step))
  reportDependencies(problems, `${field}.steps`, steps)
  return compact({
    name: tool.name,
    description: tool.description,
    parameters: parametersOf(problems, `${field}.parameters`, tool.parameters),
    annotations: tool.annotations,
    timeout: tool.timeout ?? DEFAULT_TOOL_TIMEOUT,
    steps,
    output: tool.output && normaliseOutput(problems, `${field}.output`, tool.output),
  })
}

function parametersOf(problems: ProblemList, field: string, parameters: Record<string, unknown> | undefined) {
  if (!isRecord(parameters) || Object.keys(parameters).length === 0) return undefined
  if (parameters['type'] !== 'object') {
    problems.add(field, 'wrong_type', `${field} must be a JSON Schema of type object: {type: object, properties: {NAME: {type: …}}}`)
  }
  return parameters
}

interface StepContext {
  problems: ProblemList
  field: string
  failureMode: 'abort' | 'continue'
}

function canonicalStep(context: StepContext, step: CompositeStep): CanonicalCompositeStep {
  const { problems, field } = context
  const outer = { id: step.id, dependsOn: step.dependsOn ?? [], ...commonOf(context, step) }
  switch (step.type) {
    case 'elicitation':
      return compact({
        ...outer,
        type: step.type,
        message: required(problems, `${field}.message`, step.message),
        schema: step.schema,
        onDecline: { action: step.onDecline?.action ?? 'abort' },
        onCancel: { action: step.onCancel?.action ?? 'abort' },
      })
    case 'forEach':
      return {
        ...outer,
        type: step.type,
        collection: required(problems, `${field}.collection`, step.collection),
        itemVar: step.itemVar ?? DEFAULT_ITEM_VAR,
        maxParallel: step.maxParallel || DEFAULT_MAX_PARALLEL,
        maxIterations: step.maxIterations || DEFAULT_MAX_ITERATIONS,
        step: canonicalInnerStep({ problems, field: `${field}.step`, failureMode: 'abort' }, step.step),
      }
    default:
      return {
        ...outer,
        type: 'tool',
        tool: required(problems, `${field}.tool`, step.tool),
        arguments: step.arguments ?? {},
      }
  }
}

/** `failureMode` stops at the loop: an inner step that fails ends its item, and the loop says what comes of that. */
function canonicalInnerStep(context: StepContext, step: CompositeInnerStep | undefined): CanonicalInnerStep {
  const { problems, field } = context
  const inner: Partial<CompositeInnerStep> = isRecord(step) ? step : {}
  return compact({
    id: inner.id,
    type: 'tool' as const,
    tool: required(problems, `${field}.tool`, inner.tool),
    arguments: inner.arguments ?? {},
    ...commonOf(context, inner),
  })
}

function commonOf(context: StepContext, step: Pick<CompositeInnerStep, keyof CommonStep>): CommonStep {
  return compact({
    condition: step.condition,
    defaultResults: step.defaultResults,
    timeout: step.timeout ?? DEFAULT_STEP_TIMEOUT,
    onError: canonicalOnError(context, step.onError ?? {}),
  })
}

function canonicalOnError({ problems, field, failureMode }: StepContext, onError: CompositeOnError): CanonicalOnError {
  const retryCount = unify(problems, {
    [`${field}.onError.retryCount`]: onError.retryCount,
    [`${field}.onError.maxRetries`]: onError.maxRetries,
  })
  return {
    action: onError.action ?? failureMode,
    retryCount: retryCount ?? 0,
    retryDelay: onError.retryDelay ?? DEFAULT_RETRY_DELAY,
  }
}

/** The server's rules ask for these fields; an object stored under an older schema may lack one all the same. */
function required(problems: ProblemList, field: string, value: string | undefined): string {
  if (value === undefined) problems.add(field, 'missing', `${field} must be set`)
  return value ?? ''
}
