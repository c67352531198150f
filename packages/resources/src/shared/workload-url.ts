/* Addresses of the proxies of workloads, as the operator makes their Services. */

export type ProxyKind = 'MCPServer' | 'MCPRemoteProxy'

export interface UrlInput {
  readonly kind: ProxyKind
  readonly name: string
  readonly namespace: string
  /** The transport between the proxy and its clients. */
  readonly proxyMode: 'sse' | 'streamable-http'
  readonly proxyPort: number
  readonly clusterDomain: string
}

/** Name of the Service of a proxy. */
export function proxyServiceName(kind: ProxyKind, name: string): string {
  return `mcp-${name}-${kind === 'MCPServer' ? 'proxy' : 'remote-proxy'}`
}

/** Host of the proxy's Service, as seen from anywhere in the cluster. */
export function serviceHost({ kind, name, namespace, clusterDomain }: Omit<UrlInput, 'proxyMode' | 'proxyPort'>): string {
  return `${proxyServiceName(kind, name)}.${namespace}.svc.${clusterDomain}`
}

/** `status.url`: computed each time, so that it follows the port and the transport. */
export function workloadUrl(input: UrlInput): string {
  const path = input.proxyMode === 'sse' ? `/sse#${encodeURIComponent(input.name)}` : '/mcp'
  return `http://${serviceHost(input)}:${input.proxyPort}${path}`
}
