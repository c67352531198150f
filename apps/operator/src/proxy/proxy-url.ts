import type { Service } from '@thv/kube'
import { serviceHost, type UrlInput } from '@thv/resources/shared/workload-url'
import { isReservedServiceName, proxyNames } from './names.ts'

/** Hosts of both Services: a proxy on a loopback address answers to no other cluster names. */
export function serviceHosts(input: Omit<UrlInput, 'proxyMode' | 'proxyPort'>): string[] {
  const { kind, name, namespace, clusterDomain } = input
  const { aliasService } = proxyNames(kind, name)
  const alias = isReservedServiceName(aliasService) ? [] : [`${aliasService}.${namespace}.svc.${clusterDomain}`]
  return [serviceHost(input), ...alias]
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
