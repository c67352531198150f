import type { KubeObject, ResourceType } from '@thv/kube'
import { apiLabels, podSelector, registryNames } from './names.ts'

export interface PodDisruptionBudget extends KubeObject {
  readonly spec?: { readonly maxUnavailable?: number; readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } }
}

export const disruptionBudgets: ResourceType<PodDisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
}

/** On the Deployment: there may be a budget for its pods. It is set before the budget is made and removed after the budget is gone. */
export const BUDGET_ANNOTATION = 'toolhive.stacklok.dev/disruption-budget'

/** When nodes are drained, one API pod goes at a time. */
export function disruptionBudget({ name, namespace }: { name: string; namespace: string }): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: registryNames(name).deployment, namespace, labels: apiLabels(name) },
    spec: { maxUnavailable: 1, selector: { matchLabels: podSelector(name) } },
  }
}
