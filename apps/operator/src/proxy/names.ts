import { type ProxyKind, proxyServiceName } from '@thv/resources/shared/workload-url'
import { authzConfigMapName } from '@thv/runconfig/run-config-mount'

/* Names of what the operator and the runner make for a workload, all in its namespace. */

export type { ProxyKind }

export interface ProxyNames {
  readonly deployment: string
  readonly service: string
  /** The Service that is named like the workload itself. */
  readonly aliasService: string
  readonly runConfig: string
  /** ConfigMap of the policies. */
  readonly authz: string
  /** ServiceAccount of the proxy pods; for an MCPServer its Role and RoleBinding too. */
  readonly runnerAccount: string
}

export interface ServerNames {
  readonly statefulSet: string
  readonly service: string
  readonly headlessService: string
  /** ServiceAccount of the MCP pods when the user names none. */
  readonly account: string
  readonly networkPolicy: string
}

export function proxyNames(kind: ProxyKind, name: string): ProxyNames {
  const suffix = kind === 'MCPServer' ? 'proxy' : 'remote-proxy'
  return {
    deployment: name,
    service: proxyServiceName(kind, name),
    aliasService: name,
    runConfig: `${name}-runconfig`,
    authz: authzConfigMapName(name),
    runnerAccount: `${name}-${suffix}-runner`,
  }
}

/** Objects that the runner of an MCPServer makes, and objects of the pods it makes. */
export function serverNames(name: string): ServerNames {
  return {
    statefulSet: name,
    service: `mcp-${name}`,
    headlessService: `mcp-${name}-headless`,
    account: `${name}-sa`,
    networkPolicy: `${name}-mcp`,
  }
}

export interface VirtualServerNames {
  readonly deployment: string
  readonly service: string
  /** The Service that is named like the virtual server itself. */
  readonly aliasService: string
  readonly config: string
  /** Secret that seals what clients carry back. */
  readonly seal: string
  /** ServiceAccount, Role and RoleBinding of the pods. */
  readonly account: string
}

/** Objects of a VirtualMCPServer. */
export function virtualServerNames(name: string): VirtualServerNames {
  return {
    deployment: name,
    service: `vmcp-${name}`,
    aliasService: name,
    config: `${name}-vmcp-config`,
    seal: `${name}-hmac-secret`,
    account: `${name}-vmcp`,
  }
}

/** Names of the workloads that would have an object of this name; whether there are such workloads is another matter. */
export function workloadsThatName(kind: ProxyKind | 'VirtualMCPServer', objectName: string): string[] {
  const patterns = kind === 'VirtualMCPServer' ? Object.values({ ...virtualServerNames('*') }) : proxyPatterns(kind)
  return [...new Set(patterns)].flatMap((pattern) => {
    const [before = '', after = ''] = pattern.split('*')
    const fits = objectName.startsWith(before) && objectName.endsWith(after) && objectName.length > before.length + after.length
    return fits ? [objectName.slice(before.length, objectName.length - after.length)] : []
  })
}

function proxyPatterns(kind: ProxyKind): string[] {
  const { account, networkPolicy } = serverNames('*')
  return [...Object.values({ ...proxyNames(kind, '*') }), ...(kind === 'MCPServer' ? [account, networkPolicy] : [])]
}

/** Names that Services of other workloads have: an alias with such a name would stand in the way of one of them. */
export function isReservedServiceName(name: string): boolean {
  return name.startsWith('mcp-') || name.startsWith('vmcp-')
}
