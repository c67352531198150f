import { tryParseDuration } from '@thv/kernel/duration'
import { isObject, type Json, type JsonObject } from '@thv/kernel/json'
import { problemList } from '@thv/resources/schema/normalize'
import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import { type CanonicalCompositeTool, normaliseCompositeTool } from '@thv/resources/shared/composite/composite-tool-normalise'
import { compileSchema, type JsonSchema } from '../engine/json-schema.ts'
import { type OutputMember, outputSchemaOf, type Workflow } from '../engine/workflow.ts'
import { compileOutput, type OutputSite } from './compile-output.ts'
import { compileSteps } from './compile-steps.ts'
import { Problems, type WorkflowProblem } from './problems.ts'
import { TemplateSites } from './template-sites.ts'

export type { WorkflowProblem, WorkflowProblemCode } from './problems.ts'

export interface CheckedWorkflow {
  /** Empty: the workflow can run. */
  readonly problems: readonly WorkflowProblem[]
  /** Present if there are no problems. */
  readonly workflow?: Workflow
}

/**
 * The one check of composite tools: `vmcp validate`, the admission webhook and the status of a definition all show its messages. It looks at
 * the definition alone; whether its tools exist depends on the server that offers it.
 *
 * @param field path of the tool, for the messages: `spec` or `compositeTools[0]`
 */
export function checkWorkflow(tool: CompositeTool, field = 'spec'): CheckedWorkflow {
  const problems = new Problems()
  const normalizing = problemList()
  const canonical = normaliseCompositeTool(normalizing, field, tool)
  for (const problem of normalizing.all) {
    const isCycle = problem.code === 'forbidden' && problem.field.endsWith('.dependsOn')
    const isSchema = problem.field === `${field}.parameters`
    const step = stepOf(canonical, field, problem.field)
    problems.addWhole(
      isCycle ? 'cycle' : isSchema ? 'schema' : 'value',
      { field: problem.field, ...(step !== undefined && { step }) },
      problem.message,
    )
  }
  checkIds(problems, field, canonical)
  checkTimeout(problems, `${field}.timeout`, canonical.timeout)
  const parameters = schemaOf(problems, `${field}.parameters`, canonical.parameters)
  if (parameters) checkDefaults(problems, `${field}.parameters`, canonical.parameters ?? {})
  const sites = new TemplateSites(problems, canonical)
  const steps = compileSteps({ problems, sites, field, tool: canonical })
  const output = canonical.output && outputOf({ problems, sites, field: `${field}.output` }, canonical)
  if (problems.all.length > 0) return { problems: problems.all }
  const outputSchema = outputSchemaOf(canonical)
  return {
    problems: [],
    workflow: {
      tool: canonical,
      steps,
      output,
      parameters,
      outputSchema,
      outputCheck: outputSchema && compileSchema(outputSchema),
    },
  }
}

function outputOf(site: OutputSite, { output }: CanonicalCompositeTool): ReadonlyMap<string, OutputMember> {
  for (const name of output?.required ?? []) {
    if (!Object.hasOwn(output?.properties ?? {}, name)) {
      site.problems.add('value', { field: `${site.field}.required` }, `names ${name}, which is not in properties`)
    }
  }
  return compileOutput(site, output?.properties ?? {})
}

function stepOf({ steps }: CanonicalCompositeTool, field: string, path: string): string | undefined {
  if (!path.startsWith(`${field}.steps[`)) return undefined
  return steps[Number.parseInt(path.slice(`${field}.steps[`.length), 10)]?.id
}

function checkIds(problems: Problems, field: string, { steps }: CanonicalCompositeTool): void {
  const seen = new Set<string>()
  for (const [index, { id }] of steps.entries()) {
    if (seen.has(id)) problems.add('value', { field: `${field}.steps[${index}].id`, step: id }, 'another step has the same id')
    seen.add(id)
  }
}

function checkTimeout(problems: Problems, field: string, timeout: string): void {
  const ms = tryParseDuration(timeout)
  if (ms === undefined || ms <= 0) problems.add('value', { field }, 'must be a duration over zero, such as 30s')
}

function schemaOf(problems: Problems, field: string, schema: Record<string, unknown> | undefined): JsonSchema | undefined {
  if (!schema) return undefined
  try {
    return compileSchema(schema as JsonObject)
  } catch (error) {
    problems.add('schema', { field }, `is not a JSON Schema: ${(error as Error).message}`)
    return undefined
  }
}

/** A default that does not fit its own schema would fail every call that relies on it. */
function checkDefaults(problems: Problems, field: string, parameters: Record<string, unknown>): void {
  const properties = isObject(parameters['properties']) ? parameters['properties'] : {}
  const { $defs, definitions: older } = parameters
  const definitions = { ...($defs !== undefined && { $defs }), ...(older !== undefined && { definitions: older }) }
  for (const [name, property] of Object.entries(properties)) {
    if (!isObject(property) || !('default' in property)) continue
    const found = defaultProblems({ ...definitions, ...property } as JsonObject, property['default'] as Json)
    if (found.length > 0) problems.add('schema', { field: `${field}.properties.${name}.default` }, found.join('; '))
  }
}

/** A property that refers to more than definitions is no schema alone; then its default is checked when the tool is called. */
function defaultProblems(schema: JsonObject, value: Json): readonly string[] {
  let compiled: JsonSchema
  try {
    compiled = compileSchema(schema)
  } catch {
    return []
  }
  return compiled.check(value).problems
}
