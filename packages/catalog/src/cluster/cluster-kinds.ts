import type { ResourceType } from '@thv/kube/objects/types'
import { GATEWAY_GROUP } from '../discover/objects/http-route.ts'
import { type ResourceKind, TOOLHIVE_GROUP } from '../discover/objects/mcp-resource.ts'

/** Versions in which a kind may be served, the preferred one first. */
export type KindVersions = readonly ResourceType[]

function versions(group: string, kind: string, plural: string, served: readonly string[]): KindVersions {
  return served.map((version) => ({ group, version, kind, plural, namespaced: true }))
}

const toolhive = (kind: ResourceKind, plural: string) => versions(TOOLHIVE_GROUP, kind, plural, ['v1beta1', 'v1alpha1'])

export const mcpKinds: Readonly<Record<ResourceKind, KindVersions>> = {
  MCPServer: toolhive('MCPServer', 'mcpservers'),
  MCPRemoteProxy: toolhive('MCPRemoteProxy', 'mcpremoteproxies'),
  VirtualMCPServer: toolhive('VirtualMCPServer', 'virtualmcpservers'),
}

export const httpRoutes = versions(GATEWAY_GROUP, 'HTTPRoute', 'httproutes', ['v1'])
export const gateways = versions(GATEWAY_GROUP, 'Gateway', 'gateways', ['v1'])
/** Since release 1.5 of the Gateway API also v1, with the same fields. */
export const referenceGrants = versions(GATEWAY_GROUP, 'ReferenceGrant', 'referencegrants', ['v1', 'v1beta1'])
