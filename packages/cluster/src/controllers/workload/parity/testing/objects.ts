import type { KubeObject } from '@thv/kube'
import type { Deployment, PodTemplate, ReplicaSet, StatefulSet } from '../../workload-kinds.ts'

const LABELS = { app: 'web' }

export function template(more: { labels?: Record<string, string>; nodeName?: string; serviceAccountName?: string } = {}): PodTemplate {
  const { labels = LABELS, nodeName, serviceAccountName } = more
  return {
    metadata: { labels },
    spec: {
      containers: [{ name: 'main', image: 'app:v1' }],
      ...(nodeName && { nodeName }),
      ...(serviceAccountName && { serviceAccountName }),
    },
  }
}

/** Pods on a node that does not answer: a deleted one stays until `endTerminating`. */
export const HELD = { nodeName: 'nowhere' }

export function replicaSet(spec: Partial<NonNullable<ReplicaSet['spec']>> = {}): KubeObject {
  return object('ReplicaSet', { replicas: 3, selector: { matchLabels: LABELS }, template: template(), ...spec })
}

export function deployment(spec: Partial<NonNullable<Deployment['spec']>> = {}, annotations?: Record<string, string>): KubeObject {
  const made = object('Deployment', { replicas: 3, selector: { matchLabels: LABELS }, template: template(), ...spec })
  return annotations ? { ...made, metadata: { ...made.metadata, annotations } } : made
}

export function rolling(maxSurge: number | string, maxUnavailable: number | string) {
  return { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } } }
}

export const RECREATE = { strategy: { type: 'Recreate' } }

export function statefulSet(spec: Partial<NonNullable<StatefulSet['spec']>> = {}): KubeObject {
  return object('StatefulSet', { replicas: 3, serviceName: 'web', selector: { matchLabels: LABELS }, template: template(), ...spec })
}

export function pod(name: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  const made = object('Pod', template().spec ?? {})
  return { ...made, apiVersion: 'v1', metadata: { labels: LABELS, ...metadata, name } }
}

function object(kind: string, spec: object): KubeObject {
  return { apiVersion: 'apps/v1', kind, metadata: { name: 'web' }, spec } as KubeObject
}
