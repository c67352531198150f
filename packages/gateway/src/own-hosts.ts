import { networkInterfaces } from 'node:os'
import { isLoopbackHost } from '@thv/http/authority'

export interface HostNames {
  /** The address the server really listens on. */
  readonly bound: string
  /** Full cluster names of the Services in front of the proxy: `NAME.NAMESPACE.svc.DOMAIN`. */
  readonly serviceHosts?: readonly string[] | undefined
  /** Host name of the pod. */
  readonly podName?: string | undefined
  /** Names that the user adds, such as the public one that a gateway in front passes on. */
  readonly allowedHosts?: readonly string[] | undefined
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

/**
 * The hosts by which clients may address this proxy besides the loopback ones. Undefined: any, because the proxy listens on the network
 * and the user named no hosts. A proxy on a loopback address is reached by browsers of the same machine, so it never accepts any host:
 * a name of somebody else's that resolves to it (DNS rebinding) must not open it.
 */
export function ownHosts({ bound, serviceHosts = [], podName, allowedHosts = [] }: HostNames): string[] | undefined {
  if (!isLoopbackHost(bound) && allowedHosts.length === 0) return undefined
  const addresses = addressesOf(bound)
  const pod = [podName ?? '', ...addresses.map((address) => address.replaceAll(/[.:]/g, '-'))].filter((label) => LABEL.test(label))
  const names = serviceHosts.flatMap((host) => [...serviceNames(host), ...podNames(host, pod)])
  return [...new Set([...addresses.map((address) => (address.includes(':') ? `[${address}]` : address)), ...names, ...allowedHosts])]
}

/** On `0.0.0.0` and `::` the proxy has every address of the pod. */
function addressesOf(bound: string): string[] {
  if (bound !== '0.0.0.0' && bound !== '::') return [bound]
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.filter(({ internal, scopeid }) => !internal && !scopeid).map(({ address }) => address)
}

/** As the resolver of a pod completes them: `NAME`, `NAME.NAMESPACE`, `NAME.NAMESPACE.svc` and the full name. */
function serviceNames(full: string): string[] {
  const [name = '', namespace = ''] = full.split('.')
  return [name, `${name}.${namespace}`, `${name}.${namespace}.svc`, full]
}

/** Of this pod: behind a Service, and by its address alone. */
function podNames(full: string, labels: readonly string[]): string[] {
  const [name = '', namespace = '', , ...domain] = full.split('.')
  return labels.flatMap((label) => [
    `${label}.${name}.${namespace}.svc`,
    `${label}.${full}`,
    ...[`${label}.${namespace}.pod`, [label, namespace, 'pod', ...domain].join('.')],
  ])
}
