export const MCP_TOOL_CONFIG_FINALIZER = 'toolhive.stacklok.dev/toolconfig-finalizer'

export const MCPToolConfigCondition = { Valid: 'Valid', DeletionBlocked: 'DeletionBlocked' } as const

export const MCPToolConfigReason = {
  ValidationSucceeded: 'ValidationSucceeded',
  ValidationFailed: 'ValidationFailed',
  ReferencedByWorkloads: 'ReferencedByWorkloads',
} as const
