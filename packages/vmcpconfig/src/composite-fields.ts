import { tryParseDuration } from '@thv/kernel/duration'
import type { CompositeInnerStep, CompositeOnError, CompositeStep } from '@thv/resources/shared/composite/composite-step'
import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import type { FieldTable, ValueReader } from '@thv/runconfig/field'
import { anyObject, flag, integer, listOf, mapOf, objectOf, oneOf, text } from '@thv/runconfig/value-readers'

/* The members of a composite tool, as the resource has them. `composite-rules.ts` holds what joins several of them. */

type Hints = NonNullable<CompositeTool['annotations']>
type Output = NonNullable<CompositeTool['output']>
type OnAnswer = NonNullable<CompositeStep['onDecline']>

const MAX_TEMPLATE = 65_536
const MAX_DESCRIPTION = 16_384

const template = sized(MAX_TEMPLATE)
const stepId = matching(/^[A-Za-z0-9_-]{1,128}$/, 'a name of letters, digits, "_" and "-", up to 128')
const toolReference = matching(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,255}$/, 'workload.tool, or the name that clients see')
const duration = text({ like: { test: (value) => (tryParseDuration(value) ?? -1) >= 0, words: 'a duration such as 30s' } })
const free = anyObject as ValueReader<Record<string, unknown>>

const ON_ERROR: FieldTable<CompositeOnError> = {
  action: { reader: oneOf(['abort', 'continue', 'retry']), doc: 'After the last try; as failureMode says by default.' },
  retryCount: { reader: integer({ min: 0, max: 10 }), doc: 'Number of retries, with any action.' },
  maxRetries: { reader: integer({ min: 0, max: 10 }), doc: 'Older name of `retryCount`.' },
  retryDelay: { reader: duration, doc: 'Delay before the first retry, doubled each time; `1s` by default.' },
}

const ON_ANSWER: FieldTable<OnAnswer> = {
  action: { reader: oneOf(['skip_remaining', 'abort', 'continue']), doc: 'Skip all later steps, abort the tool (default) or continue.' },
}

const COMMON: FieldTable<Pick<CompositeInnerStep, 'arguments' | 'condition' | 'defaultResults' | 'timeout' | 'onError'>> = {
  arguments: { reader: free, doc: 'Arguments of the call; strings are templates.' },
  condition: { reader: template, doc: 'Template that yields true or false; on false the step is skipped.' },
  defaultResults: { reader: free, doc: 'Results of the step if it is skipped or fails.' },
  timeout: { reader: duration, doc: 'Timeout of the step; `5m` by default.' },
  onError: { reader: objectOf(ON_ERROR), doc: 'Behavior when the step fails.' },
}

const INNER_STEP: FieldTable<CompositeInnerStep> = {
  id: { reader: stepId, doc: 'Name of the call.' },
  type: { reader: oneOf(['tool']), doc: 'Only tools can be called in a loop.' },
  tool: { reader: toolReference, required: true, doc: 'The tool to call.' },
  ...COMMON,
}

const STEP: FieldTable<CompositeStep> = {
  id: { reader: stepId, required: true, doc: 'Name of the step, for `dependsOn` and templates.' },
  type: { reader: oneOf(['tool', 'elicitation', 'forEach']), default: 'tool', doc: 'Call a tool, ask the user, or loop over a list.' },
  dependsOn: { reader: items(stepId), doc: 'Steps that must be done before.' },
  tool: { reader: toolReference, doc: 'The tool to call, as workload.tool or under the name that clients see.' },
  ...COMMON,
  message: { reader: template, doc: 'Question to the user.' },
  schema: { reader: free, doc: "JSON Schema of the user's answer." },
  onDecline: { reader: objectOf(ON_ANSWER), doc: 'Behavior when the user declines.' },
  onCancel: { reader: objectOf(ON_ANSWER), doc: 'Behavior when the user does not answer.' },
  collection: { reader: template, doc: 'Template that yields the list to iterate over.' },
  itemVar: {
    reader: matching(/^(?!index$)[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'a name other than index'),
    doc: 'Name of the item in templates.',
  },
  maxParallel: { reader: integer({ min: 0, max: 50 }), doc: 'Items processed at the same time; 10 by default.' },
  maxIterations: { reader: integer({ min: 0, max: 1_000 }), doc: 'Maximum length of the list; 100 by default.' },
  step: { reader: objectOf(INNER_STEP), doc: 'The call that is made for each item.' },
}

const HINTS: FieldTable<Hints> = {
  title: { reader: sized(1_024), doc: 'Title shown to people.' },
  readOnlyHint: { reader: flag, doc: 'Whether the tool changes nothing.' },
  destructiveHint: { reader: flag, doc: 'Whether the tool may destroy something.' },
  idempotentHint: { reader: flag, doc: 'Whether calling twice is the same as calling once.' },
  openWorldHint: { reader: flag, doc: 'Whether the tool reaches beyond a closed domain.' },
}

/** The members of a result may lie at any depth: `checkWorkflow` looks at them. */
const OUTPUT: FieldTable<Output> = {
  properties: { reader: mapOf(anyObject) as ValueReader<Output['properties']>, required: true, doc: 'The results, by name.' },
  required: { reader: items(sized(256)), doc: 'Results that are always present.' },
}

export const COMPOSITE_TOOL: FieldTable<CompositeTool> = {
  name: {
    reader: matching(/^[A-Za-z0-9_.-]{1,128}$/, 'a name of letters, digits, "_", "." and "-", up to 128'),
    required: true,
    doc: 'Name of the tool, as clients see it.',
  },
  description: { reader: sized(MAX_DESCRIPTION), required: true, doc: 'Description of the tool, for the model that chooses it.' },
  parameters: { reader: free, doc: "JSON Schema of the tool's arguments, of type object." },
  annotations: { reader: objectOf(HINTS), doc: 'Hints to clients.' },
  timeout: { reader: duration, doc: 'Timeout of the whole tool; `30m` by default.' },
  failureMode: { reader: oneOf(['abort', 'continue']), doc: 'Default of `onError.action` of all steps; `abort` by default.' },
  steps: { reader: items(objectOf(STEP)), required: true, doc: 'The steps.' },
  output: { reader: objectOf(OUTPUT), doc: 'Output of the tool. By default the output of its last step.' },
}

function sized(max: number): ValueReader<string> {
  return text({ like: { test: (value) => value.length <= max, words: `a text of 1 to ${max} characters` } })
}

function matching(pattern: RegExp, words: string): ValueReader<string> {
  return text({ like: { test: (value) => pattern.test(value), words } })
}

/** The types of resources have lists that may be changed. */
function items<T>(reader: ValueReader<T>): ValueReader<T[]> {
  return listOf(reader) as ValueReader<T[]>
}
