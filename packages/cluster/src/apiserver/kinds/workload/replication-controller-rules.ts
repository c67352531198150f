import { invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import { type KindRules, metaOf } from '../../objects/served-kind.ts'
import { withoutDisabled } from '../pod/disabled-fields.ts'
import { templateDefaults } from '../pod/pod-defaults.ts'
import { REPLICA_SET_STATUS, shapedStatus } from '../pod/status-shape.ts'
import { countProblems } from '../pod/status-validation.ts'
import { tidied } from '../pod/tidy.ts'
import { changed, numberAt, objectAt, withDefaults } from '../pod/validation/fields.ts'
import { nonNegative } from '../pod/validation/problems.ts'
import { foreverProblems, templateProblems } from '../pod/validation/template-validation.ts'

/** The forerunner of ReplicaSet: its selector is a plain map of labels, and may change. */
export const replicationControllerRules: KindRules = plainRules('subdomain', {
  generation: ['spec'],
  orphansDependents: true,
  applyDefaults: (controller) =>
    withLabels({
      ...controller,
      spec: controllerSpec(tidied(objectAt(controller, 'spec') ?? {})),
      status: shapedStatus(objectAt(controller, 'status'), REPLICA_SET_STATUS),
    }),
  prepareCreate: (controller) => ({ ...usable(controller), status: { replicas: 0 } }),
  prepareUpdate: usable,
  validate: (controller) => {
    const spec = objectAt(controller, 'spec') ?? {}
    return [
      ...nonNegative('spec.minReadySeconds', numberAt(spec, 'minReadySeconds')),
      ...(isEmpty(objectAt(spec, 'selector')) ? [required('spec.selector')] : []),
      ...nonNegative('spec.replicas', numberAt(spec, 'replicas')),
      ...podProblems(spec),
    ]
  },
  validateStatus: (controller, old) =>
    countProblems(controller, old, {
      counts: ['replicas', ...REPLICA_SET_STATUS.counts],
      parts: ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
      ready: 'readyReplicas',
    }),
  selectable: { 'status.replicas': (controller) => String(numberAt(controller, 'status', 'replicas') ?? 0) },
})

function podProblems(spec: JsonObject): FieldProblem[] {
  const template = objectAt(spec, 'template')
  if (template === undefined) return [required('spec.template')]
  const labels = objectAt(template, 'metadata', 'labels')
  const matches = Object.entries(objectAt(spec, 'selector') ?? {}).every(([name, value]) => labels?.[name] === value)
  return [
    ...(matches ? [] : [invalid('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`')]),
    ...templateProblems(template, 'spec.template'),
    ...foreverProblems(template, 'ReplicationController'),
  ]
}

function usable(controller: JsonObject): JsonObject {
  return changed(controller, 'spec', (spec) => changed(spec, 'template', (template) => changed(template, 'spec', withoutDisabled)))
}

/** The labels of the template stand in for what is missing. */
function withLabels(controller: JsonObject): JsonObject {
  const spec = objectAt(controller, 'spec') ?? {}
  const labels = objectAt(spec, 'template', 'metadata', 'labels')
  if (labels === undefined) return controller
  const metadata = metaOf(controller)
  return {
    ...controller,
    metadata: isEmpty(objectAt(metadata, 'labels')) ? { ...metadata, labels } : metadata,
    spec: isEmpty(objectAt(spec, 'selector')) ? { ...spec, selector: labels } : spec,
  }
}

function controllerSpec(spec: JsonObject): JsonObject {
  const template = objectAt(spec, 'template')
  return withDefaults(template === undefined ? spec : { ...spec, template: templateDefaults(template) }, { replicas: 1 })
}

function isEmpty(map: JsonObject | undefined): boolean {
  return Object.keys(map ?? {}).length === 0
}
