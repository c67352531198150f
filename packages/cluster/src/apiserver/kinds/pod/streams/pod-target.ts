import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { type ApiCall, storedObject } from '../../../http/request-context.ts'
import { at, isObject, textAt } from '../../../objects/served-kind.ts'
import { badRequest, StatusError } from '../../../objects/status-error.ts'
import type { ContainerTarget, PodStreams } from '../pod-streams.ts'

/** The container of a request for logs or streams, and the node that it was given to; no node when the pod has none yet. */
export interface PodTarget {
  readonly target: ContainerTarget
  readonly nodeName: string
}

/** Of the pod in the path and the container in the query, which may be left out when there is only one. */
export function podTarget(call: ApiCall): PodTarget {
  const { body, name, namespace = '' } = storedObject(call)
  const names = ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) => containerNames(body, list))
  const asked = call.query.get('container') ?? ''
  if (asked === '' && names.length !== 1)
    throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names.join(' ')}]`)
  if (asked !== '' && !names.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`)
  const container = asked || (names[0] ?? '')
  const target = { namespace, pod: name, uid: textAt(body, 'metadata', 'uid'), container }
  return { target, nodeName: textAt(body, 'spec', 'nodeName') }
}

/** Of the node that runs the pods; 501 without one. */
export function streamsOf({ env, path }: ApiCall): PodStreams {
  const streams = env.podStreams()
  if (streams !== undefined) return streams
  const message = `pods/${path.subresource} is not implemented by this server while it has no node that runs pods`
  throw new StatusError({ code: 501, reason: 'NotImplemented', message })
}

function containerNames(body: JsonObject, list: string): string[] {
  const containers = at(body, 'spec', list)
  return Array.isArray(containers) ? containers.filter(isObject).map((container) => textAt(container, 'name')) : []
}
