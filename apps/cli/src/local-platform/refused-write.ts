import type { StatusCondition } from '@thv/kube/objects/builtin-kinds'
import type { KubeObject } from '@thv/kube/objects/types'
import { WorkloadCondition } from '@thv/resources/shared/workload-conditions'
import { plainText } from '../text/plain-text.ts'

/** A condition of our own kinds. */
export interface ResourceCondition extends StatusCondition {
  readonly observedGeneration?: number
}

interface Resource extends KubeObject {
  readonly status?: { readonly conditions?: readonly ResourceCondition[] }
}

/** Why the latest spec is not applied, whether or not an earlier one still serves; such a status is not about the latest generation. */
export function refusedWrite({ metadata, status }: Resource): string | undefined {
  const refused = status?.conditions?.find(({ type }) => type === WorkloadCondition.WriteRefused)
  const isCurrent = refused?.observedGeneration === undefined || refused.observedGeneration === metadata.generation
  return refused?.status === 'True' && isCurrent ? plainText(refused.message) : undefined
}
