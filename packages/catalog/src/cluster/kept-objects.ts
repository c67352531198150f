import { objectAt } from '@thv/kernel/json'
import type { KubeObject } from '@thv/kube'
import { optsIn } from '../discover/objects/annotations.ts'
import { authenticationParts } from '../discover/objects/mcp-resource.ts'

/* The part of each object that a watch keeps in memory: what the export reads, and no more. */

type Parts = KubeObject & { readonly spec?: Readonly<Record<string, unknown>>; readonly status?: Readonly<Record<string, unknown>> }

function identity({ metadata }: KubeObject): KubeObject['metadata'] {
  const { name, namespace, uid, resourceVersion } = metadata
  return { name, ...(namespace && { namespace }), ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) }
}

export function keptResource(object: KubeObject): KubeObject {
  const { annotations, deletionTimestamp, generation } = object.metadata
  const { spec = {}, status = {} } = object as Parts
  const { image, transport, proxyMode } = spec
  const { phase, url, observedGeneration } = status
  // Their types alone matter.
  const authentication = authenticationParts.flatMap((part) =>
    spec[part] === undefined ? [] : [[part, { type: objectAt(spec, part)['type'] }]],
  )
  return {
    metadata: {
      ...identity(object),
      ...(generation !== undefined && { generation }),
      ...(annotations && { annotations }),
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    spec: { image, transport, proxyMode, ...Object.fromEntries(authentication) },
    status: { phase, url, ...(observedGeneration !== undefined && { observedGeneration }) },
  } as KubeObject
}

/** Of a route that does not opt in only its key. */
export function keptRoute(object: KubeObject): KubeObject {
  const { annotations = {}, deletionTimestamp } = object.metadata
  if (!optsIn(annotations) || deletionTimestamp !== undefined) return { metadata: identity(object) }
  const { spec, status } = object as Parts
  return { metadata: { ...identity(object), annotations }, spec, status } as KubeObject
}

export function keptGateway(object: KubeObject): KubeObject {
  const { spec, status } = object as Parts
  return { metadata: identity(object), spec: { listeners: spec?.['listeners'] }, status } as KubeObject
}

export function keptService(object: KubeObject): KubeObject {
  const { ownerReferences } = object.metadata
  const { selector, clusterIP } = (object as Parts).spec ?? {}
  const headless = clusterIP === 'None' ? { clusterIP } : {}
  return { metadata: { ...identity(object), ...(ownerReferences && { ownerReferences }) }, spec: { selector, ...headless } } as KubeObject
}

export function keptGrant(object: KubeObject): KubeObject {
  return { metadata: identity(object), spec: (object as Parts).spec } as KubeObject
}
