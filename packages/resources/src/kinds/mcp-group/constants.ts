export const MCP_GROUP_FINALIZER = 'toolhive.stacklok.dev/mcpgroup-finalizer'

export const MCPGroupCondition = { MCPServersChecked: 'MCPServersChecked' } as const

export const MCPGroupReason = {
  ListMCPServersCheckSucceeded: 'ListMCPServersCheckSucceeded',
  ListMCPServersCheckFailed: 'ListMCPServersCheckFailed',
} as const
