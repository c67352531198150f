import type { Json, JsonObject } from '@thv/kernel/json'
import type { CanonicalOutputProperty } from '@thv/resources/shared/composite/composite-output'
import type {
  CanonicalCompositeTool,
  CanonicalElicitationStep,
  CanonicalForEachStep,
  CanonicalInnerStep,
  CanonicalToolStep,
} from '@thv/resources/shared/composite/composite-tool-normalise'
import type { Template } from '../template/template.ts'
import type { JsonSchema } from './json-schema.ts'

/** A composite tool that was checked, with its templates and schemas compiled. `checkWorkflow` makes it. */
export interface Workflow {
  readonly tool: CanonicalCompositeTool
  /** In the order of the definition. */
  readonly steps: readonly WorkflowStep[]
  readonly output: ReadonlyMap<string, OutputMember> | undefined
  /** Undefined: the tool takes no parameters. */
  readonly parameters: JsonSchema | undefined
  /** For `tools/list`, if the tool says what it returns. */
  readonly outputSchema: JsonObject | undefined
  readonly outputCheck: JsonSchema | undefined
}

/** Strings are templates; other values stand for themselves. */
export type ArgumentValue =
  | { readonly kind: 'constant'; readonly value: Json }
  | { readonly kind: 'template'; readonly template: Template; readonly field: string }
  | { readonly kind: 'list'; readonly items: readonly ArgumentValue[] }
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, ArgumentValue])[] }

export interface CallPlan {
  readonly tool: string
  readonly arguments: ArgumentValue
}

interface StepBase {
  readonly id: string
  readonly field: string
  readonly condition: Template | undefined
  /** Ids of all steps that are done before this one starts. */
  readonly ancestors: ReadonlySet<string>
  readonly timeoutMs: number
}

export interface ToolStep extends StepBase {
  readonly type: 'tool'
  readonly definition: CanonicalToolStep
  readonly call: CallPlan
}

export interface ElicitationStep extends StepBase {
  readonly type: 'elicitation'
  readonly definition: CanonicalElicitationStep
  readonly message: Template
  readonly schema: JsonSchema
}

export interface ForEachStep extends StepBase {
  readonly type: 'forEach'
  readonly definition: CanonicalForEachStep
  readonly collection: Template
  readonly inner: InnerStep
}

export interface InnerStep {
  readonly definition: CanonicalInnerStep
  readonly field: string
  readonly condition: Template | undefined
  readonly timeoutMs: number
  readonly call: CallPlan
}

export type WorkflowStep = ToolStep | ElicitationStep | ForEachStep

export interface OutputMember {
  readonly field: string
  readonly definition: CanonicalOutputProperty
  readonly template: Template | undefined
  readonly members: ReadonlyMap<string, OutputMember> | undefined
}

/** The schema of what the tool returns. */
export function outputSchemaOf({ output }: CanonicalCompositeTool): JsonObject | undefined {
  if (!output) return undefined
  return {
    type: 'object',
    properties: propertySchemas(output.properties),
    ...(output.required.length > 0 && { required: output.required }),
  }
}

function propertySchemas(properties: Readonly<Record<string, CanonicalOutputProperty>>): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type, description, properties: members }]) => [
      name,
      { type, ...(description !== undefined && { description }), ...(members && { properties: propertySchemas(members) }) },
    ]),
  )
}
