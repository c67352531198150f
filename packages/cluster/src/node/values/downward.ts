import { availableParallelism, totalmem } from 'node:os'
import { readQuantity } from '@thv/kube-schema/values/quantity'
import type { PodPlace } from '../network/pod-network.ts'
import type { NodePod, ResourceFieldRef } from '../pod/pod-spec.ts'

const SUBSCRIPT = /^metadata\.(labels|annotations)\['(.*)'\]$/

/** The value of a field of the pod, or undefined when no such field can be asked for. */
export function podField(pod: NodePod, path: string, place: Pick<PodPlace, 'address' | 'hostAddress'>): string | undefined {
  const { metadata, spec } = pod
  const subscript = SUBSCRIPT.exec(path)
  if (subscript) return metadata[subscript[1] === 'labels' ? 'labels' : 'annotations']?.[subscript[2] ?? ''] ?? ''
  switch (path) {
    case 'metadata.name':
      return metadata.name
    case 'metadata.namespace':
      return metadata.namespace
    case 'metadata.uid':
      return metadata.uid
    case 'metadata.labels':
      return lines(metadata.labels)
    case 'metadata.annotations':
      return lines(metadata.annotations)
    case 'spec.nodeName':
      return spec.nodeName ?? ''
    case 'spec.serviceAccountName':
      return spec.serviceAccountName ?? ''
    case 'status.podIP':
    case 'status.podIPs':
      return place.address
    case 'status.hostIP':
    case 'status.hostIPs':
      return place.hostAddress
    default:
      return undefined
  }
}

/** A container's request or limit in units of the divisor, rounded up; without a limit what the machine has. Undefined when unknown. */
export function resourceField(pod: NodePod, ref: ResourceFieldRef, ownContainer: string): string | undefined {
  const match = /^(limits|requests)\.(.+)$/.exec(ref.resource)
  const name = ref.containerName ?? ownContainer
  const container = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((one) => one.name === name)
  if (!match || !container) return undefined
  const [, list, resource = ''] = match
  const given = container.resources?.[list === 'limits' ? 'limits' : 'requests']?.[resource]
  const value = readQuantity(given ?? (list === 'limits' ? capacityOf(resource) : '0'))
  const asked = ref.divisor === undefined || ref.divisor === '0' ? '1' : ref.divisor
  const divisor = readQuantity(asked)
  if (value === undefined || divisor === undefined || divisor.nanos <= 0n) return undefined
  return String((value.nanos + divisor.nanos - 1n) / divisor.nanos)
}

function capacityOf(resource: string): string {
  if (resource === 'cpu') return String(availableParallelism())
  return resource === 'memory' ? String(totalmem()) : '0'
}

/** `key="value"` lines in order of the keys, as volumes of the downward API hold them. */
function lines(entries: Record<string, string> = {}): string {
  return Object.keys(entries)
    .sort()
    .map((key) => `${key}=${JSON.stringify(entries[key])}`)
    .join('\n')
}
