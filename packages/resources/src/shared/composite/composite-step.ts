import type { Static } from 'typebox'
import { type CelRule, sameIfBoth, unionRules } from '../../schema/cel.ts'
import { duration, free, int32, list, obj, oneOf, opt, str } from '../../schema/nodes.ts'

export const MAX_STEPS = 100
export const MAX_RETRIES = 10

/* Conditions, messages and arguments are Go templates over .params and .steps; the engine that runs the tool parses them. */
const template = (description: string) => str(description, { minLength: 1, maxLength: 65536 })

const toolReference = () =>
  str('The tool to call, as workload.tool or under the name that clients see.', {
    maxLength: 256,
    pattern: '^[a-zA-Z0-9][a-zA-Z0-9._-]*$',
  })

/** `action` has no default here: the tool's failureMode is its default, and a stored default would look like a setting of the user. */
const onError = () =>
  obj(
    'Behavior when the step fails.',
    {
      action: opt(
        oneOf('After the last try: abort the tool or continue; retry is to try again, then abort. By default as failureMode says.', [
          'abort',
          'continue',
          'retry',
        ]),
      ),
      retryCount: opt(int32('Number of retries, with any action.', { minimum: 0, maximum: MAX_RETRIES })),
      maxRetries: opt(int32('Older name of retryCount.', { minimum: 0, maximum: MAX_RETRIES })),
      retryDelay: opt(duration('Delay before the first retry, doubled each time; 1s by default.')),
    },
    {
      rules: [
        sameIfBoth('retryCount', 'maxRetries'),
        {
          rule: "!has(self.action) || self.action != 'retry' || (has(self.retryCount) && self.retryCount > 0) || (has(self.maxRetries) && self.maxRetries > 0)",
          message: 'retryCount must be at least 1 if action is retry',
          fieldPath: '.retryCount',
        },
        {
          rule: '!has(self.retryDelay) || has(self.retryCount) || has(self.maxRetries)',
          message: 'retryDelay has no effect without retryCount: set retryCount or remove retryDelay',
          fieldPath: '.retryDelay',
        },
      ],
    },
  )

const onAnswer = (description: string) =>
  obj(description, {
    action: opt(oneOf('Abort the tool, skip all later steps, or continue.', ['skip_remaining', 'abort', 'continue'], { default: 'abort' })),
  })

/** Fields that a step that calls a tool shares with the inner step of a loop. */
const commonFields = () => ({
  arguments: opt(free('Arguments of the call; strings may be templates.')),
  condition: opt(template('Template that yields true or false; on false the step is skipped.')),
  defaultResults: opt(free('Results of the step if it is skipped or fails, by name of the result.')),
  timeout: opt(duration('Timeout of the step; 5m by default.')),
  onError: opt(onError()),
})

const stepId = () => str('Name of the step, for dependsOn and templates.', { maxLength: 128, pattern: '^[A-Za-z0-9_-]+$' })

const innerStep = () =>
  obj('The call that is made for each item.', {
    id: opt(stepId()),
    type: opt(oneOf('Only tools can be called in a loop.', ['tool'], { default: 'tool' })),
    tool: toolReference(),
    ...commonFields(),
  })

const only = (type: string, fields: readonly string[]): CelRule => ({
  rule: `self.type == '${type}' || (${fields.map((field) => `!has(self.${field})`).join(' && ')})`,
  message: `${fields.join(', ')} may only be set if type is ${type}`,
})

export const compositeStep = () =>
  obj(
    'One step. It starts once all steps that it depends on are done.',
    {
      id: stepId(),
      type: opt(
        oneOf('Call a tool, ask the user, or call a tool for each item of a list.', ['tool', 'elicitation', 'forEach'], {
          default: 'tool',
        }),
      ),
      dependsOn: opt(
        list('Steps that must be done before.', str('Id of a step.', { maxLength: 128 }), { merge: 'set', maxItems: MAX_STEPS }),
      ),
      tool: opt(toolReference()),
      ...commonFields(),
      message: opt(template('Question to the user.')),
      schema: opt(free("JSON Schema of the user's answer.")),
      onDecline: opt(onAnswer('Behavior when the user declines.')),
      onCancel: opt(onAnswer('Behavior when the user does not answer.')),
      collection: opt(template('Template that yields the list to iterate over, as JSON.')),
      itemVar: opt(
        str('Name of the item in templates, .forEach.NAME; item by default.', {
          maxLength: 64,
          pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
          rules: [{ rule: "self != 'index'", message: 'index is the name of the counter: choose another name' }],
        }),
      ),
      maxParallel: opt(int32('Number of items processed in parallel; 10 by default.', { minimum: 0, maximum: 50 })),
      maxIterations: opt(int32('Maximum length of the list; 100 by default.', { minimum: 0, maximum: 1000 })),
      step: opt(innerStep()),
    },
    {
      rules: [
        ...unionRules('type', { tool: 'tool', elicitation: 'message', forEach: 'collection' }),
        ...unionRules('type', { forEach: 'step' }),
        only('tool', ['arguments']),
        only('elicitation', ['schema', 'onDecline', 'onCancel']),
        only('forEach', ['itemVar', 'maxParallel', 'maxIterations']),
      ],
    },
  )

export type CompositeStep = Static<ReturnType<typeof compositeStep>>
export type CompositeInnerStep = NonNullable<CompositeStep['step']>
export type CompositeOnError = NonNullable<CompositeStep['onError']>
