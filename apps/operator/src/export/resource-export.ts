import { ExportAnnotation, optsIn } from '@thv/catalog/discover/objects/annotations'
import type { ConditionUpdate, KubeObject } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'

/** The state of a resource in the registries that export its namespace. */
export interface ResourceOutcome {
  /** `namespace/name` of the registries that list it. */
  readonly registries: readonly string[]
  readonly urls: readonly string[]
  /** Why it is left out, or not listed as its author may expect. */
  readonly problems: readonly { readonly reason: string; readonly message: string }[]
  /** Whether any registry exports its namespace. */
  readonly isCovered: boolean
}

/** Whether a resource asks for its export by itself. */
export function asksForExport({ metadata }: KubeObject): boolean {
  const { annotations = {} } = metadata
  return optsIn(annotations) || annotations[ExportAnnotation.url] !== undefined
}

const MAX_NAMED = 10

/** The condition of a resource; undefined for one that is not exported and does not ask for it. Pure. */
export function resourceCondition(outcome: ResourceOutcome | undefined, namespace: string): ConditionUpdate | undefined {
  if (outcome === undefined) return undefined
  const type = WorkloadCondition.RegistryExport
  const { registries, urls, problems, isCovered } = outcome
  if (registries.length > 0) {
    const reason = problems.find(({ reason: each }) => each === WorkloadReason.ConflictingConfiguration)?.reason ?? WorkloadReason.Exported
    const told = problemsText(problems, reason)
    return { type, status: 'True', reason, message: `listed by ${named(registries)} at ${named(urls)}${told && `. ${told}`}` }
  }
  if (!isCovered) {
    const message = `No MCPRegistry exports the namespace ${namespace}. Set spec.export of one.`
    return { type, status: 'False', reason: WorkloadReason.NoRegistry, message }
  }
  const [first] = problems
  if (first === undefined) {
    const message = `Set the annotation ${ExportAnnotation.export} to "true" to list it.`
    return { type, status: 'False', reason: WorkloadReason.NotOptedIn, message }
  }
  return { type, status: 'False', reason: first.reason, message: problemsText(problems, first.reason) }
}

/** Each with its reason, but for the one that the condition itself has. */
function problemsText(problems: ResourceOutcome['problems'], own: string): string {
  return problems.map(({ reason, message }) => (reason === own ? message : `${reason}: ${message}`)).join('; ')
}

function named(items: readonly string[]): string {
  const more = items.length - MAX_NAMED
  return `${items.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
