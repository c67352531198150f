import { type McpResource, resourceKinds, TOOLHIVE_GROUP } from '../objects/mcp-resource.ts'
import type { BackendService } from '../objects/service.ts'

export type ServiceTarget =
  | { readonly found: 'proxy'; readonly resource: McpResource }
  /** It leads to the pods of the MCP server itself, past its proxy and its authentication. */
  | { readonly found: 'server-pods' }
  | { readonly found: 'nothing'; readonly why: string }

export type FindResource = (owner: Pick<McpResource, 'kind' | 'namespace' | 'name'>) => McpResource | undefined

/**
 * The MCP resource whose proxy a Service leads to. An owner reference alone does not say so: an MCPServer also owns the Services of
 * its own pods. So the owner must be the one with that uid, and the selector must be that of the proxy's pods.
 */
export function serviceTarget(service: BackendService, find: FindResource): ServiceTarget {
  if (service.selector['toolhive-basename'] !== undefined) return { found: 'server-pods' }
  const owners = service.owners.filter(isToolhiveOwner)
  const owner = owners.find(({ controller }) => controller === true) ?? owners[0]
  const kind = resourceKinds.find((known) => known === owner?.kind)
  if (owner === undefined || kind === undefined) return { found: 'nothing', why: 'no MCP resource owns it' }
  const name = `${kind} ${service.namespace}/${owner.name}`
  const resource = find({ kind, namespace: service.namespace, name: owner.name })
  if (resource === undefined) return { found: 'nothing', why: `its owner ${name} is not there or not selected` }
  if (resource.uid !== undefined && resource.uid !== owner.uid) return { found: 'nothing', why: `its owner is an earlier ${name}` }
  if (service.headless) return { found: 'nothing', why: 'it is headless' }
  if (!selectsProxy(service, resource)) return { found: 'nothing', why: `it does not select the proxy pods of ${name}` }
  return { found: 'proxy', resource }
}

function isToolhiveOwner({ apiVersion, kind }: BackendService['owners'][number]): boolean {
  return apiVersion.startsWith(`${TOOLHIVE_GROUP}/`) && resourceKinds.some((known) => known === kind)
}

function selectsProxy({ selector }: BackendService, { kind, name }: McpResource): boolean {
  const app = kind.toLowerCase()
  return selector['app'] === app && selector['app.kubernetes.io/name'] === app && selector['app.kubernetes.io/instance'] === name
}
