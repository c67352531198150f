import type { KubeObject, ResourceType } from '@thv/kube/objects/types'
import { API_GROUP, STORAGE_VERSION } from '../schema/kind-definition.ts'
import type { MCPExternalAuthConfig } from './mcp-external-auth-config/schema.ts'
import type { MCPRemoteProxy } from './mcp-remote-proxy/schema.ts'
import type { MCPServer } from './mcp-server/schema.ts'
import type { MCPServerEntry } from './mcp-server-entry/schema.ts'
import type { VirtualMCPServer } from './virtual-mcp-server/schema.ts'

/* Kinds as clients name them, for programs that read objects and need no schema: schemas and their library take megabytes to load. */

export const mcpServerType = typeOf<MCPServer>('MCPServer', 'mcpservers')
export const mcpRemoteProxyType = typeOf<MCPRemoteProxy>('MCPRemoteProxy', 'mcpremoteproxies')
export const mcpServerEntryType = typeOf<MCPServerEntry>('MCPServerEntry', 'mcpserverentries')
export const mcpExternalAuthConfigType = typeOf<MCPExternalAuthConfig>('MCPExternalAuthConfig', 'mcpexternalauthconfigs')
export const virtualMcpServerType = typeOf<VirtualMCPServer>('VirtualMCPServer', 'virtualmcpservers')

function typeOf<T extends KubeObject>(kind: string, plural: string): ResourceType<T> {
  return { group: API_GROUP, version: STORAGE_VERSION, kind, plural, namespaced: true }
}
