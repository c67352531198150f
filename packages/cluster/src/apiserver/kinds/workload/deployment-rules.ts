import { forbidden, invalid } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import { type KindRules, textAt } from '../../objects/served-kind.ts'
import { problem } from '../../objects/status-error.ts'
import { withoutDisabled } from '../pod/disabled-fields.ts'
import { templateDefaults } from '../pod/pod-defaults.ts'
import { DEPLOYMENT_STATUS, shapedStatus } from '../pod/status-shape.ts'
import { countProblems } from '../pod/status-validation.ts'
import { tidied } from '../pod/tidy.ts'
import { changed, numberAt, objectAt, withDefaults } from '../pod/validation/fields.ts'
import { nonNegative } from '../pod/validation/problems.ts'
import { immutableSelector, selectedTemplateProblems } from '../pod/validation/template-validation.ts'
import { notMoreThanAll, shareOf, shareProblems } from './rolling-numbers.ts'

export const deploymentRules: KindRules = plainRules('subdomain', {
  // Annotations are handed on to the ReplicaSets.
  generation: ['spec', 'metadata.annotations'],
  applyDefaults: (deployment) => ({
    ...deployment,
    spec: deploymentSpec(tidied(objectAt(deployment, 'spec') ?? {})),
    status: shapedStatus(objectAt(deployment, 'status'), DEPLOYMENT_STATUS),
  }),
  prepareCreate: (deployment) => ({ ...usable(deployment), status: {} }),
  prepareUpdate: usable,
  validate: (deployment, old) => {
    const spec = objectAt(deployment, 'spec') ?? {}
    return [...deploymentProblems(spec), ...(old ? immutableSelector(spec, objectAt(old, 'spec') ?? {}) : [])]
  },
  validateStatus: (deployment, old) =>
    countProblems(deployment, old, {
      counts: [...DEPLOYMENT_STATUS.counts, 'terminatingReplicas', 'collisionCount'],
      parts: ['updatedReplicas', 'readyReplicas', 'availableReplicas'],
      ready: 'readyReplicas',
    }),
})

function usable(deployment: JsonObject): JsonObject {
  return changed(deployment, 'spec', (spec) => changed(spec, 'template', (template) => changed(template, 'spec', withoutDisabled)))
}

function deploymentSpec(spec: JsonObject): JsonObject {
  const strategy = withDefaults(objectAt(spec, 'strategy') ?? {}, { type: 'RollingUpdate' })
  const rolling = strategy['type'] === 'RollingUpdate'
  const share = withDefaults(objectAt(strategy, 'rollingUpdate') ?? {}, { maxUnavailable: '25%', maxSurge: '25%' })
  return withDefaults(
    {
      ...spec,
      template: templateDefaults(objectAt(spec, 'template')),
      strategy: rolling ? { ...strategy, rollingUpdate: share } : strategy,
    },
    { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 },
  )
}

function deploymentProblems(spec: JsonObject): FieldProblem[] {
  const deadline = numberAt(spec, 'progressDeadlineSeconds')
  const problems = [
    ...nonNegative('spec.replicas', numberAt(spec, 'replicas')),
    ...selectedTemplateProblems(spec, { kindWord: 'deployment', nonsense: 'invalid label selector', deadlineWord: 'ReplicaSet' }),
    ...strategyProblems(objectAt(spec, 'strategy') ?? {}, 'spec.strategy'),
    ...nonNegative('spec.minReadySeconds', numberAt(spec, 'minReadySeconds')),
    ...nonNegative('spec.revisionHistoryLimit', numberAt(spec, 'revisionHistoryLimit')),
    ...nonNegative('spec.progressDeadlineSeconds', deadline),
  ]
  if (deadline !== undefined && deadline <= (numberAt(spec, 'minReadySeconds') ?? 0))
    problems.push(invalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'))
  return problems
}

function strategyProblems(strategy: JsonObject, path: string): FieldProblem[] {
  const type = textAt(strategy, 'type')
  const rolling = objectAt(strategy, 'rollingUpdate')
  if (type === 'Recreate')
    return rolling ? [forbidden(`${path}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'")] : []
  if (type === 'RollingUpdate') return rollingProblems(rolling ?? {}, `${path}.rollingUpdate`)
  const update = rolling ? { MaxUnavailable: rolling['maxUnavailable'] ?? 0, MaxSurge: rolling['maxSurge'] ?? 0 } : null
  const shown = JSON.stringify({ Type: type, RollingUpdate: update })
  return [problem(path, 'FieldValueNotSupported', `Unsupported value: ${shown}: supported values: "Recreate", "RollingUpdate"`)]
}

function rollingProblems(rolling: JsonObject, path: string): FieldProblem[] {
  const unavailable = rolling['maxUnavailable'] ?? 0
  const surge = rolling['maxSurge'] ?? 0
  const problems = [...shareProblems(`${path}.maxUnavailable`, unavailable), ...shareProblems(`${path}.maxSurge`, surge)]
  if (shareOf(unavailable) === 0 && shareOf(surge) === 0)
    problems.push(invalid(`${path}.maxUnavailable`, unavailable, 'may not be 0 when `maxSurge` is 0'))
  return [...problems, ...notMoreThanAll(`${path}.maxUnavailable`, unavailable)]
}
