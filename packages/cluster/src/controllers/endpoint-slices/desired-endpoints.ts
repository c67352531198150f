import { isIPv4 } from 'node:net'
import type { KubeNode, Pod, PodSpec, Service } from '@thv/kube'

export interface SlicePort {
  readonly name: string
  readonly protocol: string
  readonly port: number
  readonly appProtocol?: string
}

export interface Endpoint {
  readonly addresses: string[]
  readonly conditions: { readonly ready: boolean; readonly serving: boolean; readonly terminating: boolean }
  readonly hostname?: string
  readonly nodeName?: string
  readonly zone?: string
  readonly targetRef: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string }
}

/** Endpoints whose ports are the same; one Service has several groups when its pods give a port's name different numbers. */
export interface EndpointGroup {
  readonly ports: readonly SlicePort[]
  readonly endpoints: readonly Endpoint[]
}

/** Endpoints of the slices of a Service, by `portKey`. `nodeOf` finds a pod's node. */
export function desiredEndpoints(
  service: Service,
  selected: readonly Pod[],
  nodeOf: (name: string) => KubeNode | undefined,
): Map<string, EndpointGroup> {
  const groups = new Map<string, { ports: SlicePort[]; endpoints: Endpoint[] }>()
  for (const pod of selected) {
    const endpoint = endpointOf(service, pod, nodeOf)
    if (endpoint === undefined) continue
    const ports = portsOf(service, pod)
    const key = portKey(ports)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { ports, endpoints: [endpoint] })
    else group.endpoints.push(endpoint)
  }
  return groups
}

/** The same for the same ports, in whatever order they are. */
export function portKey(ports: readonly Partial<SlicePort>[]): string {
  return ports
    .map(({ name = '', protocol = 'TCP', port, appProtocol = '' }) => JSON.stringify([name, protocol, port, appProtocol]))
    .sort()
    .join()
}

function endpointOf(service: Service, pod: Pod, nodeOf: (name: string) => KubeNode | undefined): Endpoint | undefined {
  const { namespace = '', name, uid = '', deletionTimestamp } = pod.metadata
  const address = addressOf(pod)
  if (address === undefined || pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded') return undefined
  const serving = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  const terminating = deletionTimestamp !== undefined
  const ready = service.spec?.['publishNotReadyAddresses'] === true || (serving && !terminating)
  const { nodeName, hostname, subdomain }: Partial<PodSpec> = pod.spec ?? {}
  const node = nodeName ? nodeOf(nodeName) : undefined
  // No node runs it any more; it will be collected.
  if (nodeName && node === undefined && service.spec?.['publishNotReadyAddresses'] !== true) return undefined
  const zone = node?.metadata.labels?.['topology.kubernetes.io/zone']
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(nodeName ? { nodeName } : {}),
    ...(zone ? { zone } : {}),
    ...(typeof hostname === 'string' && hostname !== '' && subdomain === service.metadata.name ? { hostname } : {}),
  }
}

function addressOf({ status }: Pod): string | undefined {
  const all = (status?.['podIPs'] ?? []) as readonly { ip?: string }[]
  return [...all.map(({ ip }) => ip), status?.podIP].find((ip) => ip !== undefined && isIPv4(ip))
}

interface ContainerPort {
  readonly name?: string
  readonly containerPort: number
  readonly protocol?: string
}

/** A port whose name the pod does not know is left out for this pod. */
function portsOf(service: Service, pod: Pod): SlicePort[] {
  return (service.spec?.ports ?? []).flatMap((one): SlicePort[] => {
    const { name = '', protocol = 'TCP', targetPort, port } = one
    const { appProtocol } = one as { appProtocol?: string }
    const number = typeof targetPort === 'string' ? namedPort(pod, targetPort, protocol) : targetPort || port
    if (number === undefined) return []
    return [{ name, protocol, port: number, ...(appProtocol === undefined ? {} : { appProtocol }) }]
  })
}

/** Of the containers that live as long as the pod: init containers with a restart policy are among them. */
function namedPort(pod: Pod, name: string, protocol: string): number | undefined {
  const sidecars = (pod.spec?.initContainers ?? []).filter((container) => container['restartPolicy'] === 'Always')
  return [...(pod.spec?.containers ?? []), ...sidecars]
    .flatMap((container) => (container['ports'] ?? []) as readonly ContainerPort[])
    .find((port) => port.name === name && (port.protocol ?? 'TCP') === protocol)?.containerPort
}
