import { type LabelMatcher, type LabelSelector, parseLabelSelector } from '@thv/kube'

/** Undefined for a selector that cannot be read, or that selects everything: a workload with such a one does nothing. */
export function workloadSelector(selector: LabelSelector | undefined): LabelMatcher | undefined {
  if (selector === undefined) return undefined
  try {
    const matcher = parseLabelSelector(selector)
    return matcher.requirements.length === 0 ? undefined : matcher
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
