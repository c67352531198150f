import type { Service } from '@thv/kube'
import { isReservedServiceName, type ProxyKind, proxyNames } from './names.ts'

export interface UrlInput {
  readonly kind: ProxyKind
  readonly name: string
  readonly namespace: string
  /** The transport between the proxy and its clients. */
  readonly proxyMode: 'sse' | 'streamable-http'
  readonly proxyPort: number
  readonly clusterDomain: string
}

/** Host of the proxy's Service, as seen from anywhere in the cluster. */
export function serviceHost({ kind, name, namespace, clusterDomain }: Omit<UrlInput, 'proxyMode' | 'proxyPort'>): string {
  return `${proxyNames(kind, name).service}.${namespace}.svc.${clusterDomain}`
}

/** Hosts of both Services: a proxy on a loopback address answers to no other cluster names. */
export function serviceHosts(input: Omit<UrlInput, 'proxyMode' | 'proxyPort'>): string[] {
  const { kind, name, namespace, clusterDomain } = input
  const { aliasService } = proxyNames(kind, name)
  const alias = isReservedServiceName(aliasService) ? [] : [`${aliasService}.${namespace}.svc.${clusterDomain}`]
  return [serviceHost(input), ...alias]
}

/** `status.url`: computed each time, so that it follows the port and the transport. */
export function workloadUrl(input: UrlInput): string {
  const path = input.proxyMode === 'sse' ? `/sse#${encodeURIComponent(input.name)}` : '/mcp'
  return `http://${serviceHost(input)}:${input.proxyPort}${path}`
}

/** Where a Service is reached from outside, in place of its first port; written by nodes that have no address for each Service. */
export const LOCAL_ADDRESS_ANNOTATION = 'toolhive.stacklok.dev/local-address'

/** The same URL at the address of the Service; undefined while it has none. */
export function urlAtAddress(url: string, service: Service | undefined): string | undefined {
  const local = service?.metadata.annotations?.[LOCAL_ADDRESS_ANNOTATION]
  const address = service?.spec?.clusterIP
  const at = new URL(url)
  if (local !== undefined && /^[^/@?#\s]+:\d{1,5}$/.test(local)) at.host = local
  else if (address !== undefined && address !== '' && address !== 'None') at.hostname = address.includes(':') ? `[${address}]` : address
  else return undefined
  return at.href
}
