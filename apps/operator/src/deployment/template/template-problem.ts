import type { ConditionUpdate } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Blocker } from '../contribution.ts'

/** Something in the spec that the API server would refuse, or that only the operator may set. Never holds a value. */
export interface TemplateProblem {
  /** Such as `spec.podTemplateSpec.spec.containers[0].name`. */
  readonly path: string
  readonly message: string
}

export const TEMPLATE_PATH = 'spec.podTemplateSpec'

const MAX_TOLD = 5

/** Problems as what they block: those of the template under its own condition. */
export function problemBlockers(problems: readonly TemplateProblem[]): Blocker[] {
  const isTemplate = ({ path }: TemplateProblem) => path.startsWith(TEMPLATE_PATH)
  const template = problems.filter(isTemplate)
  const others = problems.filter((problem) => !isTemplate(problem))
  return [
    ...(template.length > 0
      ? [{ condition: WorkloadCondition.PodTemplateValid, reason: WorkloadReason.InvalidPodTemplateSpec, message: told(template) }]
      : []),
    ...(others.length > 0
      ? [{ condition: WorkloadCondition.ConfigurationValid, reason: WorkloadReason.InvalidSpec, message: told(others) }]
      : []),
  ]
}

/** `PodTemplateValid` of a template without problems; none without a template. */
export function templateCondition(podTemplateSpec: unknown, usedFor: string): ConditionUpdate[] {
  if (podTemplateSpec === undefined) return []
  const message = `${TEMPLATE_PATH} is used for ${usedFor}.`
  return [{ type: WorkloadCondition.PodTemplateValid, status: 'True', reason: WorkloadReason.ValidPodTemplateSpec, message }]
}

function told(problems: readonly TemplateProblem[]): string {
  const lines = problems.slice(0, MAX_TOLD).map(({ path, message }) => `${path} ${message}`)
  const more = problems.length - lines.length
  return `${lines.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
}
