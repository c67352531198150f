import type { ProxyKind } from './names.ts'

export type Labels = Readonly<Record<string, string>>

/** Of the proxy or virtual server: Deployment, its selector, its pods, its Services and their selectors. */
export function workloadLabels(kind: ProxyKind | 'VirtualMCPServer', name: string): Record<string, string> {
  const app = kind.toLowerCase()
  return {
    app,
    'app.kubernetes.io/name': app,
    'app.kubernetes.io/instance': name,
    toolhive: 'true',
    'toolhive-name': name,
  }
}

/** Labels that select the pods of the MCP server. Here `app` is the name of the server, not its kind. */
export function serverSelector(name: string): Record<string, string> {
  return { app: name, 'toolhive-basename': name }
}

export interface ServerLabelFacts {
  readonly name: string
  readonly transport: string
  readonly proxyPort: number
}

/** RunConfig `container_labels`: the runner puts them on all it makes. */
export function serverLabels({ name, transport, proxyPort }: ServerLabelFacts): Record<string, string> {
  return {
    toolhive: 'true',
    'toolhive-name': name,
    'toolhive-basename': name,
    'toolhive-transport': transport,
    'toolhive-port': String(proxyPort),
  }
}

export type ConfigComponent = 'run-config' | 'authz'

/** Of the ConfigMaps that the proxy pods mount. */
export function configLabels(component: ConfigComponent, { kind, name }: { kind: ProxyKind; name: string }): Record<string, string> {
  return {
    'toolhive.stacklok.io/component': component,
    'toolhive.stacklok.io/managed-by': 'toolhive-operator',
    [kind === 'MCPServer' ? 'toolhive.stacklok.io/mcp-server' : 'toolhive.stacklok.io/mcp-remote-proxy']: name,
  }
}

/** As `status.selector` has it, for autoscalers. */
export function selectorText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}

/** Users may add keys but never change those of the operator. */
export function withOwnKeys(added: Labels, own: Labels): Record<string, string> {
  return { ...added, ...own }
}
