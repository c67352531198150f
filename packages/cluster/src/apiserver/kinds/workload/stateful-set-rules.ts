import { jsonEqual } from '@thv/kernel/json'
import { forbidden, invalid, invalidShown } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { labelNameProblems } from '@thv/kube-schema/values/name-checks'
import { plainRules } from '../../objects/kind-rules.ts'
import { isObject, type KindRules, textAt, without } from '../../objects/served-kind.ts'
import { withoutDisabled } from '../pod/disabled-fields.ts'
import { claimSpecDefaults, templateDefaults } from '../pod/pod-defaults.ts'
import { STATEFUL_SET_STATUS, shapedStatus } from '../pod/status-shape.ts'
import { countProblems } from '../pod/status-validation.ts'
import { tidied } from '../pod/tidy.ts'
import { claimSpecProblems } from '../pod/validation/claim-validation.ts'
import { changed, changedItems, numberAt, objectAt, objectsAt, withDefaults } from '../pod/validation/fields.ts'
import { invalidAll, nonNegative, oneOf } from '../pod/validation/problems.ts'
import { selectedTemplateProblems } from '../pod/validation/template-validation.ts'

export const statefulSetRules: KindRules = plainRules('label', {
  generation: ['spec'],
  applyDefaults: (set) => ({
    ...set,
    spec: statefulSetSpec(tidied(objectAt(set, 'spec') ?? {})),
    status: shapedStatus(objectAt(set, 'status'), STATEFUL_SET_STATUS),
  }),
  prepareCreate: (set) => ({ ...usable(set), status: { replicas: 0, availableReplicas: 0 } }),
  prepareUpdate: usable,
  validate: (set, old) => {
    const spec = objectAt(set, 'spec') ?? {}
    return [...statefulSetProblems(spec, old === undefined), ...(old ? changeProblems(spec, objectAt(old, 'spec') ?? {}) : [])]
  },
  validateStatus: (set, old) =>
    countProblems(set, old, {
      counts: [
        'replicas',
        'readyReplicas',
        'currentReplicas',
        'updatedReplicas',
        'availableReplicas',
        'observedGeneration',
        'collisionCount',
      ],
      parts: ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'],
      ready: 'status.readyReplicas',
    }),
})

function usable(set: JsonObject): JsonObject {
  return changed(set, 'spec', (spec) => {
    const rolling = (strategy: JsonObject) => changed(strategy, 'rollingUpdate', (one) => without(one, 'maxUnavailable'))
    const plain = changed(spec, 'updateStrategy', rolling)
    return changed(plain, 'template', (template) => changed(template, 'spec', withoutDisabled))
  })
}

function statefulSetSpec(spec: JsonObject): JsonObject {
  const complete = withDefaults(
    {
      ...spec,
      template: templateDefaults(objectAt(spec, 'template')),
      updateStrategy: updateStrategy(objectAt(spec, 'updateStrategy') ?? {}),
    },
    { serviceName: '', podManagementPolicy: 'OrderedReady', replicas: 1, revisionHistoryLimit: 10 },
  )
  const retention = withDefaults(objectAt(spec, 'persistentVolumeClaimRetentionPolicy') ?? {}, {
    whenDeleted: 'Retain',
    whenScaled: 'Retain',
  })
  return changedItems({ ...complete, persistentVolumeClaimRetentionPolicy: retention }, 'volumeClaimTemplates', claimTemplate)
}

function updateStrategy(strategy: JsonObject): JsonObject {
  const typed: JsonObject =
    textAt(strategy, 'type') === '' ? { ...strategy, type: 'RollingUpdate', rollingUpdate: strategy['rollingUpdate'] ?? {} } : strategy
  return typed['type'] === 'RollingUpdate' ? changed(typed, 'rollingUpdate', (one) => withDefaults(one, { partition: 0 })) : typed
}

function claimTemplate(claim: JsonObject): JsonObject {
  const metadata = claim['metadata']
  const spec = claimSpecDefaults(objectAt(claim, 'spec') ?? {})
  const status = withDefaults(objectAt(claim, 'status') ?? {}, { phase: 'Pending' })
  return { ...claim, kind: 'PersistentVolumeClaim', apiVersion: 'v1', metadata: isObject(metadata) ? metadata : {}, spec, status }
}

const POLICIES = ['OrderedReady', 'Parallel']

function statefulSetProblems(spec: JsonObject, isNew: boolean): FieldProblem[] {
  const policy = textAt(spec, 'podManagementPolicy')
  const service = textAt(spec, 'serviceName')
  const problems: FieldProblem[] = []
  if (!POLICIES.includes(policy)) problems.push(invalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'"))
  problems.push(...strategyProblems(objectAt(spec, 'updateStrategy') ?? {}, 'spec.updateStrategy'))
  for (const name of ['whenDeleted', 'whenScaled']) {
    const field = `spec.persistentVolumeClaimRetentionPolicy.${name}`
    problems.push(...oneOf(field, textAt(spec, 'persistentVolumeClaimRetentionPolicy', name), ['Retain', 'Delete']))
  }
  // They cannot change, so an old one is not looked at again.
  if (isNew) {
    const claims = objectsAt(spec, 'volumeClaimTemplates')
    problems.push(
      ...claims.flatMap((claim, index) => claimSpecProblems(objectAt(claim, 'spec') ?? {}, `spec.volumeClaimTemplates[${index}].spec`)),
    )
  }
  problems.push(...nonNegative('spec.replicas', numberAt(spec, 'replicas')))
  problems.push(...nonNegative('spec.minReadySeconds', numberAt(spec, 'minReadySeconds')))
  problems.push(...nonNegative('spec.ordinals.start', numberAt(spec, 'ordinals', 'start')))
  if (isNew && service !== '') problems.push(...invalidAll('spec.serviceName', service, labelNameProblems(service)))
  const rules = { kindWord: 'statefulset', nonsense: '', deadlineWord: 'StatefulSet' }
  return [...problems, ...selectedTemplateProblems({ ...spec, template: withClaims(spec) }, rules)]
}

/** The template as its pods will be: with a volume for each claim, and names that the set itself gives. */
function withClaims(spec: JsonObject): JsonObject {
  const claims = objectsAt(spec, 'volumeClaimTemplates').map((claim) => textAt(claim, 'metadata', 'name'))
  return changed(objectAt(spec, 'template') ?? {}, 'spec', (pod) => {
    const plain = without(pod, 'subdomain', 'hostname')
    if (claims.length === 0) return plain
    const own = objectsAt(pod, 'volumes').filter((volume) => !claims.includes(textAt(volume, 'name')))
    const claimed = [...new Set(claims)].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
    return { ...plain, volumes: [...claimed, ...own] }
  })
}

function strategyProblems(strategy: JsonObject, path: string): FieldProblem[] {
  const type = textAt(strategy, 'type')
  const rolling = objectAt(strategy, 'rollingUpdate')
  const shown = rolling ? { Partition: numberAt(rolling, 'partition') ?? 0, MaxUnavailable: null } : null
  if (type === 'RollingUpdate') return nonNegative(`${path}.rollingUpdate.partition`, numberAt(rolling, 'partition'))
  if (type === 'OnDelete')
    return rolling ? [invalidShown(`${path}.rollingUpdate`, JSON.stringify(shown), "only allowed for updateStrategy 'RollingUpdate'")] : []
  return [invalidShown(path, JSON.stringify({ Type: type, RollingUpdate: shown }), "must be 'RollingUpdate' or 'OnDelete'")]
}

const CHANGEABLE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
]

function changeProblems(spec: JsonObject, old: JsonObject): FieldProblem[] {
  if (jsonEqual(without(spec, ...CHANGEABLE), without(old, ...CHANGEABLE))) return []
  const listed = CHANGEABLE.slice(0, -1).map((name) => `'${name}'`)
  return [forbidden('spec', `updates to statefulset spec for fields other than ${listed.join(', ')} and 'minReadySeconds' are forbidden`)]
}
