import { type ConfigMap, controllerOf, parseLabelSelector } from '@thv/kube'
import type { CanonicalSelector } from '@thv/resources/kinds/mcp-registry/normalise'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'

/** Whether a ConfigMap is selected. Output of an MCPRegistry never is, nor is a ConfigMap that is being deleted. Pure. */
export function isSelected({ metadata }: ConfigMap, selector: CanonicalSelector): boolean {
  if (metadata.deletionTimestamp !== undefined || controllerOf({ metadata })?.kind === 'MCPRegistry') return false
  return matcherOf(selector).matches(metadata.labels)
}

/** The text of the selector for a list request. */
export function selectorText(selector: CanonicalSelector): string {
  return matcherOf(selector).text
}

/** Whether one of the registry's selectors matches the labels of a ConfigMap. */
export function selectsLabels({ spec }: MCPRegistry, { metadata }: ConfigMap): boolean {
  return (spec.registries ?? []).some(
    ({ configMapSelector: selector }) => selector !== undefined && matcherOf(selector).matches(metadata.labels),
  )
}

type Selector = Pick<CanonicalSelector, 'matchLabels' | 'matchExpressions'>
type Matcher = ReturnType<typeof parseLabelSelector>

/** Parsed once per object of the cache. A selector that the API server would refuse matches nothing. */
const matchers = new WeakMap<object, Matcher>()

function matcherOf(selector: Selector): Matcher {
  const known = matchers.get(selector)
  if (known !== undefined) return known
  const { matchLabels, matchExpressions } = selector
  const parsed = parse({ ...(matchLabels && { matchLabels }), ...(matchExpressions && { matchExpressions }) })
  matchers.set(selector, parsed)
  return parsed
}

function parse(selector: Parameters<typeof parseLabelSelector>[0]): Matcher {
  try {
    return parseLabelSelector(selector)
  } catch (error) {
    if (error instanceof RangeError) return { requirements: [], text: '', matches: () => false }
    throw error
  }
}
