import { tryParseDuration } from '@thv/kernel/duration'
import { isObject, type Json, type JsonObject } from '@thv/kernel/json'
import type {
  CanonicalCompositeStep,
  CanonicalCompositeTool,
  CanonicalElicitationStep,
  CanonicalForEachStep,
  CanonicalOnError,
} from '@thv/resources/shared/composite/composite-tool-normalise'
import { compileSchema, type JsonSchema } from '../engine/json-schema.ts'
import type { ArgumentValue, ElicitationStep, ForEachStep, InnerStep, WorkflowStep } from '../engine/workflow.ts'
import type { Template } from '../template/template.ts'
import { ancestorsOf } from './ancestors.ts'
import type { Problems } from './problems.ts'
import type { TemplateScope, TemplateSites } from './template-sites.ts'

export interface StepsToCompile {
  readonly problems: Problems
  readonly sites: TemplateSites
  readonly field: string
  readonly tool: CanonicalCompositeTool
}

const MAX_ARGUMENT_DEPTH = 100
const MAX_QUESTION_TIMEOUT_MS = 10 * 60_000
/** A client shows a form: flat, with plain values. */
const FORM_TYPES = ['string', 'number', 'integer', 'boolean', 'array']

export function compileSteps(work: StepsToCompile): WorkflowStep[] {
  const ancestors = ancestorsOf(work.tool.steps)
  return work.tool.steps.map((step, index) => {
    const field = `${work.field}.steps[${index}]`
    return compileStep(work, step, { field, step: step.id, ancestors: ancestors.get(step.id) ?? new Set() })
  })
}

function compileStep(work: StepsToCompile, step: CanonicalCompositeStep, scope: TemplateScope): WorkflowStep {
  const base = {
    id: step.id,
    field: scope.field,
    ancestors: scope.ancestors,
    condition: conditionOf(work, scope, step.condition),
    timeoutMs: timeoutOf(work, scope, step.timeout),
  }
  checkOnError(work, scope, step.onError)
  switch (step.type) {
    case 'elicitation':
      return { ...base, ...questionOf(work, scope, step) }
    case 'forEach':
      return { ...base, ...loopOf(work, scope, step) }
    default:
      return {
        ...base,
        type: 'tool',
        definition: step,
        call: { tool: step.tool, arguments: argumentsOf(work, scope, step.arguments) },
      }
  }
}

type Question = Pick<ElicitationStep, 'type' | 'definition' | 'message' | 'schema'>

function questionOf(work: StepsToCompile, scope: TemplateScope, step: CanonicalElicitationStep): Question {
  const { problems, sites } = work
  notRetried(problems, scope, step.onError, 'a question is not asked again')
  if ((tryParseDuration(step.timeout) ?? 0) > MAX_QUESTION_TIMEOUT_MS) {
    problems.add('value', { ...scope, field: `${scope.field}.timeout` }, 'a question can be open for 10m at most')
  }
  return {
    type: 'elicitation',
    definition: step,
    message: sites.compile({ ...scope, field: `${scope.field}.message` }, step.message),
    schema: formOf(
      problems,
      { ...scope, field: `${scope.field}.schema` },
      (step.schema ?? { type: 'object', properties: {} }) as JsonObject,
    ),
  }
}

function formOf(problems: Problems, site: TemplateScope, schema: JsonObject): JsonSchema {
  try {
    const compiled = compileSchema(schema)
    const properties = isObject(schema['properties']) ? schema['properties'] : {}
    if (schema['type'] !== 'object') problems.add('schema', site, 'must be of type object')
    for (const [name, property] of Object.entries(properties)) {
      const type = isObject(property) ? property['type'] : undefined
      if (type !== undefined && !FORM_TYPES.includes(String(type))) {
        problems.add('schema', site, `${name} is of type ${JSON.stringify(type)}, but clients ask for plain values only`)
      }
    }
    return compiled
  } catch (error) {
    problems.add('schema', site, `is not a JSON Schema: ${(error as Error).message}`)
    return compileSchema({})
  }
}

type Loop = Pick<ForEachStep, 'type' | 'definition' | 'collection' | 'inner'>

function loopOf(work: StepsToCompile, scope: TemplateScope, step: CanonicalForEachStep): Loop {
  const { problems, sites } = work
  notRetried(problems, scope, step.onError, 'a loop is not repeated as a whole: set onError on its step')
  const collection = sites.compile({ ...scope, field: `${scope.field}.collection` }, step.collection)
  if (collection.constant !== undefined && !isListText(collection.constant)) {
    problems.add('value', { ...scope, field: `${scope.field}.collection` }, 'must give a list, as a template or as JSON')
  }
  return { type: 'forEach', definition: step, collection, inner: innerOf(work, { ...scope, itemVar: step.itemVar }, step) }
}

function innerOf(work: StepsToCompile, outer: TemplateScope, { step }: CanonicalForEachStep): InnerStep {
  const scope = { ...outer, field: `${outer.field}.step` }
  checkOnError(work, scope, step.onError)
  return {
    definition: step,
    field: scope.field,
    condition: conditionOf(work, scope, step.condition),
    timeoutMs: timeoutOf(work, scope, step.timeout),
    call: { tool: step.tool, arguments: argumentsOf(work, scope, step.arguments) },
  }
}

function isListText(text: string): boolean {
  try {
    return Array.isArray(JSON.parse(text))
  } catch {
    return false
  }
}

function conditionOf({ problems, sites }: StepsToCompile, scope: TemplateScope, source: string | undefined): Template | undefined {
  if (source === undefined) return undefined
  const site = { ...scope, field: `${scope.field}.condition` }
  const template = sites.compile(site, source)
  if (template.constant !== undefined && template.source === source && !/^(?:true|True|TRUE|false|False|FALSE)$/.test(source)) {
    problems.add('value', site, 'must give true or false')
  }
  return template
}

function timeoutOf({ problems }: StepsToCompile, scope: TemplateScope, timeout: string): number {
  const ms = tryParseDuration(timeout)
  if (ms === undefined || ms <= 0)
    problems.add('value', { ...scope, field: `${scope.field}.timeout` }, 'must be a duration over zero, such as 30s')
  return ms ?? 0
}

function checkOnError({ problems }: StepsToCompile, scope: TemplateScope, { action, retryCount, retryDelay }: CanonicalOnError): void {
  const site = (member: string) => ({ ...scope, field: `${scope.field}.onError.${member}` })
  if (action === 'retry' && retryCount < 1) problems.add('value', site('retryCount'), 'must be at least 1 if action is retry')
  if (tryParseDuration(retryDelay) === undefined) problems.add('value', site('retryDelay'), 'must be a duration, such as 1s')
}

function notRetried(problems: Problems, scope: TemplateScope, { action, retryCount }: CanonicalOnError, why: string): void {
  if (action === 'retry' || retryCount > 0) problems.add('value', { ...scope, field: `${scope.field}.onError.retryCount` }, why)
}

function argumentsOf({ problems, sites }: StepsToCompile, scope: TemplateScope, given: Record<string, unknown>): ArgumentValue {
  return compile(given as JsonObject, `${scope.field}.arguments`, 0)

  function compile(value: Json, field: string, depth: number): ArgumentValue {
    if (depth > MAX_ARGUMENT_DEPTH) {
      problems.add('value', { ...scope, field: `${scope.field}.arguments` }, `is nested more than ${MAX_ARGUMENT_DEPTH} levels deep`)
      return { kind: 'constant', value: null }
    }
    if (typeof value === 'string') {
      const template = sites.compile({ ...scope, field }, value)
      return template.constant === undefined ? { kind: 'template', template, field } : { kind: 'constant', value: template.constant }
    }
    if (Array.isArray(value))
      return { kind: 'list', items: value.map((item: Json, index) => compile(item, `${field}[${index}]`, depth + 1)) }
    if (!isObject(value)) return { kind: 'constant', value }
    const members = Object.entries(value as JsonObject).map(
      ([name, member]) => [name, compile(member, `${field}.${name}`, depth + 1)] as const,
    )
    return { kind: 'object', members }
  }
}
