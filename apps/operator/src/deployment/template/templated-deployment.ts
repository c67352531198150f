import { configHash } from '@thv/kernel/config-hash'
import type { UnknownObject } from '@thv/kernel/json'
import type { ConditionUpdate, Deployment, PodSpec, PodTemplateSpec } from '@thv/kube'
import { withSecurityContexts } from '@thv/kube/objects/pod-security'
import type { OperatorSettings } from '../../operator-settings.ts'
import { WorkloadAnnotation } from './annotations.ts'
import { judgePodSecurity } from './pod-security.ts'
import { mergeProxyTemplate, type TemplateRole } from './template-merge.ts'
import { TEMPLATE_PATH, type TemplateProblem, templateCondition } from './template-problem.ts'

export interface TemplatedDeploymentInput {
  readonly name: string
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Labels of the pods that are the Deployment's. */
  readonly selector: Readonly<Record<string, string>>
  /** Undefined: the number is left to an autoscaler or to kubectl scale. */
  readonly replicas: number | undefined
  /** Whether the old pods must go before the new ones come. */
  readonly recreate: boolean
  readonly base: PodTemplateSpec
  /** `podTemplateSpec` of the user. */
  readonly patch: UnknownObject | undefined
  /** Default: the proxy. */
  readonly role?: TemplateRole
  /** Subject of the template in messages, such as `the pods`. */
  readonly pods: string
  /** Found before the merge; with one, the template is not judged. */
  readonly problems?: readonly TemplateProblem[]
  /** Last changes to the merged pod. */
  readonly finish?: (pod: PodSpec) => PodSpec
  readonly settings: Pick<OperatorSettings, 'platform' | 'podSecurity'>
}

export interface TemplatedDeployment {
  readonly deployment: Deployment
  /** Variables of the user that the operator's own hide. */
  readonly shadowed: readonly string[]
  /** When there are any, the Deployment must not be applied. */
  readonly problems: readonly TemplateProblem[]
  readonly conditions: readonly ConditionUpdate[]
}

/** The Deployment of a server: its pod template with the wishes of the user, secured and judged. Pure. */
export function templatedDeployment(input: TemplatedDeploymentInput): TemplatedDeployment {
  const { name, namespace, labels, annotations, selector, replicas, recreate, base, patch, role, settings, finish = asIs } = input
  const secure = (pod: PodSpec) => withSecurityContexts(pod, settings.platform)
  const merged =
    patch === undefined
      ? { template: base, shadowed: [], problems: [] }
      : mergeProxyTemplate({ base, patch, secure, ...(role && { role }) })
  const { template, shadowed } = merged
  const problems = [...(input.problems ?? []), ...merged.problems]
  const deployment: Deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: {
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: selector },
      strategy: strategyOf(recreate),
      template: { ...template, ...(template.spec && { spec: secure(finish(template.spec)) }) },
    },
  }
  const pod = deployment.spec?.template?.spec
  const security =
    patch === undefined || pod === undefined || problems.length > 0
      ? { problems: [], conditions: [] }
      : judgePodSecurity(pod, settings.podSecurity, (path) => `${TEMPLATE_PATH}.spec.${path}`)
  return {
    deployment,
    shadowed,
    problems: [...problems, ...security.problems],
    conditions: problems.length > 0 ? [] : [...templateCondition(patch, input.pods), ...security.conditions],
  }
}

/** Annotation of a Deployment whose pods have wishes of the user. */
export function templateHash(patch: UnknownObject | undefined): Record<string, string> {
  return patch === undefined ? {} : { [WorkloadAnnotation.podTemplateSpecHash]: configHash(patch) }
}

/**
 * All members are set, so that server-side apply takes `rollingUpdate` away when pods must go first: the API server refuses both together. Otherwise
 * the new pod is ready before the old one goes.
 */
function strategyOf(recreate: boolean): Readonly<Record<string, unknown>> {
  return recreate ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
}

function asIs(pod: PodSpec): PodSpec {
  return pod
}
