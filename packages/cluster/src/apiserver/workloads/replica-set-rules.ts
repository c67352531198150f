import { plainRules } from '../builtin-rules.ts'
import type { JsonObject } from '../kind-schema.ts'
import type { KindRules } from '../served-kind.ts'
import { withoutDisabled } from './disabled-fields.ts'
import { changed, numberAt, objectAt, withDefaults } from './fields.ts'
import { templateDefaults } from './pod-defaults.ts'
import { nonNegative } from './problems.ts'
import { REPLICA_SET_STATUS, shapedStatus } from './status-shape.ts'
import { countProblems } from './status-validation.ts'
import { immutableSelector, selectedTemplateProblems } from './template-validation.ts'
import { tidied } from './tidy.ts'

export const replicaSetRules: KindRules = plainRules('subdomain', {
  generation: ['spec'],
  applyDefaults: (set) => ({
    ...set,
    spec: replicaSetSpec(tidied(objectAt(set, 'spec') ?? {})),
    status: shapedStatus(objectAt(set, 'status'), REPLICA_SET_STATUS),
  }),
  prepareCreate: (set) => ({ ...usable(set), status: { replicas: 0 } }),
  prepareUpdate: usable,
  validate: (set, old) => {
    const spec = objectAt(set, 'spec') ?? {}
    return [
      ...nonNegative('spec.replicas', numberAt(spec, 'replicas')),
      ...nonNegative('spec.minReadySeconds', numberAt(spec, 'minReadySeconds')),
      ...selectedTemplateProblems(spec, { kindWord: 'deployment', nonsense: 'invalid label selector', deadlineWord: 'ReplicaSet' }),
      ...(old ? immutableSelector(spec, objectAt(old, 'spec') ?? {}) : []),
    ]
  },
  validateStatus: (set, old) =>
    countProblems(set, old, {
      counts: ['replicas', ...REPLICA_SET_STATUS.counts, 'terminatingReplicas'],
      parts: ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
      ready: 'readyReplicas',
    }),
})

function usable(set: JsonObject): JsonObject {
  return changed(set, 'spec', (spec) => changed(spec, 'template', (template) => changed(template, 'spec', withoutDisabled)))
}

function replicaSetSpec(spec: JsonObject): JsonObject {
  return withDefaults({ ...spec, template: templateDefaults(objectAt(spec, 'template')) }, { replicas: 1 })
}
