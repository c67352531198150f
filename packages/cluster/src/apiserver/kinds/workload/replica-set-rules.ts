import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import type { KindRules } from '../../objects/served-kind.ts'
import { withoutDisabled } from '../pod/disabled-fields.ts'
import { templateDefaults } from '../pod/pod-defaults.ts'
import { REPLICA_SET_STATUS, shapedStatus } from '../pod/status-shape.ts'
import { countProblems } from '../pod/status-validation.ts'
import { tidied } from '../pod/tidy.ts'
import { changed, numberAt, objectAt, withDefaults } from '../pod/validation/fields.ts'
import { nonNegative } from '../pod/validation/problems.ts'
import { immutableSelector, selectedTemplateProblems } from '../pod/validation/template-validation.ts'

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
