import type { Static } from 'typebox'
import { bool, list, map, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { toolOverride } from '../../shared/tool-override.ts'
import { toolConfigRef } from '../../shared/workload-fields.ts'

export const DEFAULT_PREFIX_FORMAT = '{workload}_'
export const DEFAULT_SELECTOR_ARGUMENT = 'backend'

const workloadName = (description: string) => str(description, { minLength: 1, maxLength: 253 })

const toolNames = (description: string) =>
  list(description, str('Name of a tool.', { minLength: 1, maxLength: 256 }), { merge: 'set', maxItems: 1000 })

/** How the tools of many backends become one list. */
export const aggregation = () =>
  obj(
    "Aggregation of the backends' tools into one list.",
    {
      conflictResolution: opt(
        oneOf(
          'Tools of the same name: prefix puts a prefix before all names, prefixOnConflict only before those that clash, priority keeps the tool of the first backend, manual follows winners and tools, selector makes one tool with an argument that names the backend.',
          ['prefix', 'priority', 'manual', 'prefixOnConflict', 'selector'],
          { default: 'prefix' },
        ),
      ),
      conflictResolutionConfig: opt(
        obj('Settings of the strategy.', {
          prefixFormat: opt(
            str('Prefix of a name; {workload} is the name of the backend.', {
              minLength: 1,
              maxLength: 128,
              default: DEFAULT_PREFIX_FORMAT,
            }),
          ),
          priorityOrder: opt(
            list('Backends, the most important first.', workloadName('Name of a backend.'), { merge: 'set', maxItems: 256 }),
          ),
          winners: opt(
            map('For manual: the backend that gets a name, by name.', workloadName('Name of a backend.'), {
              maxProperties: 1000,
            }),
          ),
          selectorArgument: opt(str('For selector: name of the argument; backend by default.', { minLength: 1, maxLength: 64 })),
        }),
      ),
      defaultToolVisibility: opt(
        oneOf('Whether clients see the tools of backends that have no entry in tools; allow by default.', ['allow', 'deny']),
      ),
      excludeAllTools: opt(bool('Whether clients see composite tools only.')),
      tools: opt(
        list('Tools of single backends that clients see, and their presentation.', workloadTools(), { merge: ['workload'], maxItems: 256 }),
      ),
    },
    {
      rules: [
        {
          rule: "self.conflictResolution != 'priority' || !has(self.conflictResolutionConfig) || (has(self.conflictResolutionConfig.priorityOrder) && size(self.conflictResolutionConfig.priorityOrder) > 0)",
          message: 'conflictResolutionConfig.priorityOrder must not be empty if conflictResolution is priority',
          fieldPath: '.conflictResolutionConfig.priorityOrder',
        },
        {
          rule: "self.conflictResolution == 'priority' || !has(self.conflictResolutionConfig) || !has(self.conflictResolutionConfig.priorityOrder)",
          message: 'priorityOrder may only be set if conflictResolution is priority',
          fieldPath: '.conflictResolutionConfig.priorityOrder',
        },
        {
          rule: "self.conflictResolution != 'manual' || (has(self.tools) && size(self.tools) > 0) || (has(self.conflictResolutionConfig) && has(self.conflictResolutionConfig.winners) && size(self.conflictResolutionConfig.winners) > 0)",
          message: 'tools or winners must have an entry if conflictResolution is manual',
          fieldPath: '.tools',
        },
        {
          rule: "self.conflictResolution == 'manual' || !has(self.conflictResolutionConfig) || !has(self.conflictResolutionConfig.winners)",
          message: 'winners may only be set if conflictResolution is manual',
          fieldPath: '.conflictResolutionConfig.winners',
        },
        {
          rule: "self.conflictResolution == 'selector' || !has(self.conflictResolutionConfig) || !has(self.conflictResolutionConfig.selectorArgument)",
          message: 'selectorArgument may only be set if conflictResolution is selector',
          fieldPath: '.conflictResolutionConfig.selectorArgument',
        },
      ],
    },
  )

export type Aggregation = Static<ReturnType<typeof aggregation>>

const workloadTools = () =>
  obj(
    'The tools of one backend.',
    {
      workload: workloadName('Name of the backend.'),
      filter: opt(toolNames('The tools that clients see, after overrides. By default all.')),
      exclude: opt(toolNames('Tools that clients do not see, after overrides.')),
      excludeAll: opt(bool('Whether clients see none of them.')),
      overrides: opt(map('New names and descriptions, by the real name of the tool.', toolOverride(), { maxProperties: 1000 })),
      toolConfigRef: opt(toolConfigRef()),
    },
    {
      rules: [
        {
          rule: '!has(self.excludeAll) || !self.excludeAll || (!has(self.filter) && !has(self.exclude))',
          message: 'filter and exclude have no effect if excludeAll is true: remove them',
        },
      ],
    },
  )
