import { type LabelMatcher, type LabelSelector, parseLabelSelector } from '@thv/kube'

/** A selector, or the plain map of labels that a ReplicationController has in its place. */
export type WorkloadSelector = LabelSelector | Readonly<Record<string, string>>

/** Undefined for a selector that cannot be read, or that selects everything: a workload with such a one does nothing. */
export function workloadSelector(selector: WorkloadSelector | undefined): LabelMatcher | undefined {
  if (selector === undefined) return undefined
  try {
    const matcher = parseLabelSelector(isPlain(selector) ? { matchLabels: { ...selector } } : selector)
    return matcher.requirements.length === 0 ? undefined : matcher
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function isPlain(selector: WorkloadSelector): selector is Readonly<Record<string, string>> {
  return Object.values(selector).some((value) => typeof value === 'string')
}
