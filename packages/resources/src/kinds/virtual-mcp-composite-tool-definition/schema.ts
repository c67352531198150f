import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf } from '../../schema/kind-definition.ts'
import { list, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { compositeTool } from '../../shared/composite/composite-tool.ts'
import { CompositeToolValidationStatus, VirtualMCPCompositeToolDefinitionCondition } from './constants.ts'

const status = obj('Validation result, and the VirtualMCPServers that use this tool.', {
  observedGeneration: opt(observedGeneration()),
  validationStatus: opt(oneOf('Whether the definition is valid.', Object.values(CompositeToolValidationStatus))),
  validationErrors: opt(list('Problems, one sentence each.', str('A problem, with the path of the field.'))),
  referencingVirtualServers: opt(list('Names of the VirtualMCPServers that offer the tool, sorted.', str('Name.'), { merge: 'set' })),
  conditions: opt(conditions()),
})

export const virtualMcpCompositeToolDefinition = {
  kind: 'VirtualMCPCompositeToolDefinition',
  plural: 'virtualmcpcompositetooldefinitions',
  singular: 'virtualmcpcompositetooldefinition',
  shortNames: ['vmcpctd', 'compositetool'],
  description: 'A tool composed of calls to other tools, for any number of VirtualMCPServers.',
  spec: compositeTool('The tool and its steps.'),
  specRequired: true,
  status,
  columns: [
    { name: 'Workflow', type: 'string', jsonPath: '.spec.name', description: 'Name of the tool, as clients see it.' },
    { name: 'Status', type: 'string', jsonPath: '.status.validationStatus', description: 'Valid, Invalid or Unknown.' },
    conditionColumn('Ready', VirtualMCPCompositeToolDefinitionCondition.Ready),
    AGE_COLUMN,
  ],
} as const

export type VirtualMCPCompositeToolDefinition = ObjectOf<typeof virtualMcpCompositeToolDefinition>
export const virtualMcpCompositeToolDefinitionType = resourceTypeOf(virtualMcpCompositeToolDefinition)
