import type { Static } from 'typebox'
import type { CelRule } from '../../schema/cel.ts'
import { anyValue, duration, free, list, map, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { toolAnnotations } from '../tool-override.ts'
import { compositeStep, MAX_STEPS } from './composite-step.ts'

export const OUTPUT_TYPES = ['string', 'integer', 'number', 'boolean', 'object', 'array'] as const

const outputProperty = () =>
  obj(
    'One result.',
    {
      type: oneOf('JSON type of the result.', OUTPUT_TYPES),
      description: opt(str('Description of the result.', { maxLength: 16384 })),
      value: opt(str('Template that yields the result.', { minLength: 1, maxLength: 65536 })),
      default: opt(anyValue('Result if the template yields none.')),
      properties: opt(free('Members of an object, each described like a result.')),
    },
    { rules: [valueOrProperties()] },
  )

function valueOrProperties(): CelRule {
  return {
    rule: "self.type == 'object' ? has(self.value) != has(self.properties) : (has(self.value) && !has(self.properties))",
    message: 'value must be set; a result of type object has either value or properties',
  }
}

const output = () =>
  obj(
    'Output of the tool. By default the output of its last step.',
    {
      properties: map('The results, by name.', outputProperty(), { maxProperties: 256 }),
      required: opt(
        list('Results that are always present.', str('Name of a result.', { maxLength: 256 }), { merge: 'set', maxItems: 256 }),
      ),
    },
    {
      rules: [
        {
          rule: '!has(self.required) || self.required.all(name, name in self.properties)',
          message: 'required may only name results that are in properties',
          fieldPath: '.required',
        },
      ],
    },
  )

/** A tool made of calls to other tools: the spec of VirtualMCPCompositeToolDefinition, and inline in VirtualMCPServer. */
export const compositeTool = (description: string) =>
  obj(description, {
    name: str('Name of the tool, as clients see it.', { maxLength: 128, pattern: '^[A-Za-z0-9_.-]+$' }),
    description: str('Description of the tool, for the model that chooses it.', { minLength: 1, maxLength: 16384 }),
    parameters: opt(free("JSON Schema of the tool's arguments, of type object.")),
    annotations: opt(toolAnnotations('Hints to clients. They may not promise more than the tools that are called.')),
    timeout: opt(duration('Timeout of the whole tool; 30m by default.')),
    failureMode: opt(oneOf('Default of onError.action of all steps; abort by default.', ['abort', 'continue'])),
    steps: list('The steps. Those that do not depend on each other run at the same time.', compositeStep(), {
      merge: ['id'],
      minItems: 1,
      maxItems: MAX_STEPS,
    }),
    output: opt(output()),
  })

export type CompositeTool = Static<ReturnType<typeof compositeTool>>
