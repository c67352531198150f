import type { Pod } from '@thv/kube'
import { podFromTemplate } from '../workload/pod-from-template.ts'
import { type PodTemplate, type StatefulSet, statefulSets } from '../workload/workload-kinds.ts'

const POD_NAME = 'statefulset.kubernetes.io/pod-name'
const POD_INDEX = 'apps.kubernetes.io/pod-index'
const REVISION = 'controller-revision-hash'

/** The number in the name; undefined for a pod that is named otherwise. */
export function ordinalOf(set: StatefulSet, { metadata }: Pod): number | undefined {
  const prefix = `${set.metadata.name}-`
  const digits = metadata.name.startsWith(prefix) ? metadata.name.slice(prefix.length) : ''
  return /^[0-9]+$/.test(digits) && Number(digits) < 2 ** 31 ? Number(digits) : undefined
}

export function podRevision({ metadata }: Pod): string {
  return metadata.labels?.[REVISION] ?? ''
}

export interface PodVersion {
  readonly ordinal: number
  readonly template: PodTemplate
  /** Name of the ControllerRevision that holds the template. */
  readonly revision: string
}

/** A pod that is not there yet: it has no status. */
export function statefulPod(set: StatefulSet, { ordinal, template, revision }: PodVersion): Pod {
  const pod = podFromTemplate(template, { object: set, type: statefulSets })
  const name = `${set.metadata.name}-${ordinal}`
  const labels = { ...pod.metadata.labels, ...identityLabels(name, ordinal), [REVISION]: revision }
  const subdomain = set.spec?.serviceName
  return {
    ...pod,
    metadata: { ...pod.metadata, name, labels },
    spec: { containers: [], ...pod.spec, hostname: name, ...(subdomain ? { subdomain } : {}) },
  }
}

/** The labels that the pod should have and has not, or undefined. A Service may select one pod by them. */
export function missingIdentity(set: StatefulSet, pod: Pod): Record<string, string> | undefined {
  const ordinal = ordinalOf(set, pod)
  const { name, labels } = pod.metadata
  return ordinal === undefined || labels?.[POD_NAME] === name ? undefined : identityLabels(name, ordinal)
}

function identityLabels(name: string, ordinal: number): Record<string, string> {
  return { [POD_NAME]: name, [POD_INDEX]: String(ordinal) }
}
