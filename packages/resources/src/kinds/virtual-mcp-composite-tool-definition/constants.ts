export const VirtualMCPCompositeToolDefinitionCondition = {
  WorkflowValidated: 'WorkflowValidated',
  Ready: 'Ready',
} as const

export const VirtualMCPCompositeToolDefinitionReason = {
  ValidationSuccess: 'ValidationSuccess',
  ValidationFailed: 'ValidationFailed',
  SchemaInvalid: 'SchemaInvalid',
  TemplateInvalid: 'TemplateInvalid',
  DependencyCycle: 'DependencyCycle',
  ToolNotFound: 'ToolNotFound',
  WorkflowReady: 'WorkflowReady',
  WorkflowNotReady: 'WorkflowNotReady',
} as const

export const CompositeToolValidationStatus = { Valid: 'Valid', Invalid: 'Invalid', Unknown: 'Unknown' } as const
