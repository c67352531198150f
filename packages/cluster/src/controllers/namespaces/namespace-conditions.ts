import type { StatusCondition } from '@thv/kube'
import type { Remainder } from './namespace-content.ts'

export interface DeletionState {
  readonly discoveryError?: string | undefined
  /** One text per kind that could not be deleted. */
  readonly contentErrors: readonly string[]
  readonly remainders: readonly Remainder[]
}

type Finding = Pick<StatusCondition, 'type' | 'status' | 'reason' | 'message'>

/** The conditions of a namespace that goes, in the words of Kubernetes. A condition that stays keeps its time. */
export function deletionConditions(state: DeletionState, before: readonly StatusCondition[], now: string): StatusCondition[] {
  return findings(state).map((finding) => {
    const old = before.find(({ type }) => type === finding.type)
    const since = old?.status === finding.status ? old.lastTransitionTime : undefined
    return { ...finding, lastTransitionTime: since ?? now }
  })
}

function findings({ discoveryError, contentErrors, remainders }: DeletionState): Finding[] {
  // As in Kubernetes: while pods remain the rest is not looked at, and both conditions are absent.
  const left = remainders.filter(({ count, resource }) => count > 0 && !(resource.group === '' && resource.plural === 'pods'))
  const resources = left.map(({ resource, count }) => `${resource.plural}.${resource.group} has ${count} resource instances`).sort()
  const finalizers = new Map<string, number>()
  for (const remainder of left) for (const [name, count] of remainder.finalizers) finalizers.set(name, (finalizers.get(name) ?? 0) + count)
  const holders = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`).sort()
  return [
    discoveryError === undefined
      ? good('NamespaceDeletionDiscoveryFailure', 'ResourcesDiscovered', 'All resources successfully discovered')
      : bad('NamespaceDeletionDiscoveryFailure', 'DiscoveryFailed', `Discovery failed for some groups, 1 failing: ${discoveryError}`),
    good('NamespaceDeletionGroupVersionParsingFailure', 'ParsedGroupVersions', 'All legacy kube types successfully parsed'),
    contentErrors.length === 0
      ? good('NamespaceDeletionContentFailure', 'ContentDeleted', 'All content successfully deleted, may be waiting on finalization')
      : bad(
          'NamespaceDeletionContentFailure',
          'ContentDeletionFailed',
          `Failed to delete all resource types, ${contentErrors.length} remaining: ${contentErrors.join(', ')}`,
        ),
    resources.length === 0
      ? good('NamespaceContentRemaining', 'ContentRemoved', 'All content successfully removed')
      : bad('NamespaceContentRemaining', 'SomeResourcesRemain', `Some resources are remaining: ${resources.join(', ')}`),
    holders.length === 0
      ? good('NamespaceFinalizersRemaining', 'ContentHasNoFinalizers', 'All content-preserving finalizers finished')
      : bad(
          'NamespaceFinalizersRemaining',
          'SomeFinalizersRemain',
          `Some content in the namespace has finalizers remaining: ${holders.join(', ')}`,
        ),
  ]
}

function good(type: string, reason: string, message: string): Finding {
  return { type, status: 'False', reason, message }
}

function bad(type: string, reason: string, message: string): Finding {
  return { type, status: 'True', reason, message }
}
