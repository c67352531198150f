import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { at, textAt, without } from '../../objects/served-kind.ts'
import { tidied } from './tidy.ts'
import { changed, changedItems, objectAt, objectsAt, withDefaults } from './validation/fields.ts'

/* Statuses as the server writes them: counts of nothing left out, some members always there. */

interface Shape {
  readonly always?: JsonObject
  /** Left out when zero. */
  readonly counts: readonly string[]
  readonly condition: JsonObject
}

export const DEPLOYMENT_STATUS: Shape = {
  counts: ['observedGeneration', 'replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'],
  condition: { lastUpdateTime: null, lastTransitionTime: null },
}
export const REPLICA_SET_STATUS: Shape = {
  always: { replicas: 0 },
  counts: ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'],
  condition: { lastTransitionTime: null },
}
export const STATEFUL_SET_STATUS: Shape = {
  always: { replicas: 0, availableReplicas: 0 },
  counts: ['observedGeneration', 'readyReplicas', 'currentReplicas', 'updatedReplicas'],
  condition: { lastTransitionTime: null },
}

export function shapedStatus(status: JsonObject | undefined, { always = {}, counts, condition }: Shape): JsonObject {
  const plain = tidied(status ?? {})
  const nothing = counts.filter((name) => plain[name] === 0)
  return changedItems(withDefaults(without(plain, ...nothing), always), 'conditions', (one) => withDefaults(one, condition))
}

/** The status of a pod, with its addresses in both of their forms. */
export function podStatus(status: JsonObject): JsonObject {
  const plain = tidied(status)
  let result = plain['observedGeneration'] === 0 ? without(plain, 'observedGeneration') : plain
  result = changedItems(result, 'conditions', (one) =>
    withDefaults(one['observedGeneration'] === 0 ? without(one, 'observedGeneration') : one, {
      lastProbeTime: null,
      lastTransitionTime: null,
    }),
  )
  for (const list of ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'])
    result = changedItems(result, list, containerStatus)
  return withAddresses(result)
}

const CONTAINER: JsonObject = { state: {}, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '' }

function containerStatus(status: JsonObject): JsonObject {
  const state = (one: JsonObject) =>
    changed(
      changed(one, 'running', (running) => withDefaults(running, { startedAt: null })),
      'terminated',
      (terminated) => withDefaults(terminated, { exitCode: 0, startedAt: null, finishedAt: null }),
    )
  return changed(changed(withDefaults(status, CONTAINER), 'state', state), 'lastState', state)
}

/** Where the one address and the first of the list differ, the one counts. */
function withAddresses(status: JsonObject): JsonObject {
  const one = textAt(status, 'podIP')
  const list = objectsAt(status, 'podIPs')
  const first = textAt(list[0], 'ip')
  if (one === '') return first === '' ? status : { ...status, podIP: first }
  return one === first ? status : { ...status, podIPs: [{ ip: one }] }
}

/** Known fields that a writer of a status leaves out stay. */
export function keptStatus(status: JsonObject, old: JsonObject): JsonObject {
  const kept = ['qosClass', 'observedGeneration'].filter((name) => status[name] === undefined && old[name] !== undefined)
  const before = objectsAt(old, 'conditions')
  const result = { ...status, ...Object.fromEntries(kept.map((name) => [name, old[name] ?? null])) }
  return changedItems(result, 'conditions', (condition) => {
    const generation = at(
      before.find((one) => one['type'] === condition['type']),
      'observedGeneration',
    )
    return generation === undefined ? condition : withDefaults(condition, { observedGeneration: generation })
  })
}

export function statusOf(object: JsonObject): JsonObject {
  return objectAt(object, 'status') ?? {}
}
