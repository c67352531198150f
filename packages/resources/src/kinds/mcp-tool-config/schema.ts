import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf } from '../../schema/kind-definition.ts'
import { list, map, obj, opt, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { referencingWorkloads } from '../../shared/referencing-workloads.ts'
import { toolOverride } from '../../shared/tool-override.ts'
import { MCPToolConfigCondition } from './constants.ts'

const spec = obj('The tools that clients see, and their presentation.', {
  toolsFilter: opt(
    list(
      'Names of the tools that clients see, after overrides. By default all.',
      str('Name of a tool.', { minLength: 1, maxLength: 256, pattern: '^[^,\\r\\n]+$' }),
      {
        merge: 'set',
        maxItems: 1000,
      },
    ),
  ),
  toolsOverride: opt(map('New names, descriptions and hints, by the real name of the tool.', toolOverride(), { maxProperties: 1000 })),
})

const status = obj('Workloads that reference the configuration.', {
  observedGeneration: opt(observedGeneration()),
  configHash: opt(str('Hash of the spec. Workloads compare it to notice changes.')),
  referencingWorkloads: opt(referencingWorkloads()),
  conditions: opt(conditions()),
})

export const mcpToolConfig = {
  kind: 'MCPToolConfig',
  plural: 'mcptoolconfigs',
  singular: 'mcptoolconfig',
  shortNames: ['tc', 'toolconfig'],
  description: 'The tools of an MCP server that clients see, and their names. Shared by all workloads that reference it.',
  spec,
  specRequired: false,
  status,
  columns: [conditionColumn('Valid', MCPToolConfigCondition.Valid), AGE_COLUMN],
} as const

export type MCPToolConfig = Omit<ObjectOf<typeof mcpToolConfig>, 'spec'> & Partial<Pick<ObjectOf<typeof mcpToolConfig>, 'spec'>>
export const mcpToolConfigType = resourceTypeOf(mcpToolConfig)
