import { type ProxyKind, proxyNames } from '../workload/pod/names.ts'

export interface UrlInput {
  readonly kind: ProxyKind
  readonly name: string
  readonly namespace: string
  /** What the proxy speaks to its clients. */
  readonly proxyMode: 'sse' | 'streamable-http'
  readonly proxyPort: number
  readonly clusterDomain: string
}

/** Host of the proxy's Service, as seen from anywhere in the cluster. */
export function serviceHost({ kind, name, namespace, clusterDomain }: Omit<UrlInput, 'proxyMode' | 'proxyPort'>): string {
  return `${proxyNames(kind, name).service}.${namespace}.svc.${clusterDomain}`
}

/** `status.url`: made anew each time, so that it follows the port and the transport. */
export function workloadUrl(input: UrlInput): string {
  const path = input.proxyMode === 'sse' ? `/sse#${encodeURIComponent(input.name)}` : '/mcp'
  return `http://${serviceHost(input)}:${input.proxyPort}${path}`
}
