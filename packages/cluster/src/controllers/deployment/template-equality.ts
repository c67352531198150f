import { jsonEqual } from '@thv/kernel/json'
import { templateHash } from '../workload/template-hash.ts'
import type { Deployment, PodTemplate, ReplicaSet } from '../workload/workload-kinds.ts'

export const TEMPLATE_HASH = 'pod-template-hash'

/** Whether the set's pods are those that the Deployment wants now. */
export function hasTemplateOf(set: ReplicaSet, deployment: Deployment): boolean {
  const wanted = withoutHash(deployment.spec?.template ?? {})
  const given = withoutHash(set.spec?.template ?? {})
  if (jsonEqual(given, wanted)) return true
  // A Deployment that was stored before the server learned a default would else get new sets without end.
  const hash = templateHash(deployment.spec?.template ?? {}, deployment.status?.collisionCount)
  return set.metadata.labels?.[TEMPLATE_HASH] === hash && covers(given, wanted)
}

function withoutHash(template: PodTemplate): PodTemplate {
  const labels = { ...template.metadata?.labels }
  delete labels[TEMPLATE_HASH]
  return { ...template, metadata: { ...template.metadata, labels } }
}

/** Says all that `wanted` says; it may say more. */
function covers(given: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null || typeof given !== 'object' || given === null) return jsonEqual(given, wanted)
  if (Array.isArray(wanted) !== Array.isArray(given)) return false
  if (Array.isArray(wanted) && wanted.length !== (given as unknown[]).length) return false
  const members = given as Readonly<Record<string, unknown>>
  return Object.entries(wanted).every(([name, value]) => value === undefined || covers(members[name], value))
}
