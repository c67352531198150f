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

/**
 * A default that does not fit its own schema would fail every call that relies on it. All are checked with one schema, of the properties
 * and definitions alone and without the defaults, which would be filled in. Where that is no schema, as with references to other parts, they
 * are checked when the tool is called.
 */
function checkDefaults(problems: Problems, field: string, parameters: Record<string, unknown>): void {
  const { properties, $defs, definitions } = parameters
  const given = Object.entries(isObject(properties) ? properties : {}).filter(([, property]) => isObject(property) && 'default' in property)
  if (given.length === 0) return
  const withoutDefaults = given.map(([name, property]) => [name, { ...(property as JsonObject), default: undefined }] as const)
  let compiled: JsonSchema
  try {
    compiled = compileSchema({
      ...($defs !== undefined && { $defs }),
      ...(definitions !== undefined && { definitions }),
      properties: { ...(properties as JsonObject), ...Object.fromEntries(withoutDefaults) },
    } as JsonObject)
  } catch {
    return
  }
  const values = given.map(([name, property]): JsonObject => Object.fromEntries([[name, (property as JsonObject)['default'] as Json]]))
  for (const [at, { problems: found }] of compiled.checkAll(values).entries()) {
    const name = given[at]?.[0] ?? ''
    if (found.length > 0)
      problems.add('schema', { field: `${field}.properties.${name}.default` }, found.map((text) => belowName(text, name)).join('; '))
  }
}

/** `city.name must be string` is said of the field of `city`. */
function belowName(text: string, name: string): string {
  const path = name.replaceAll('~', '~0').replaceAll('/', '~1')
  return text.startsWith(`${path} `) || text.startsWith(`${path}.`) ? text.slice(path.length + 1) : text
}
