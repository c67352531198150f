import { isReady } from '../pod-state.ts'
import { HELD, pod, replicaSet, template } from './testing/objects.ts'
import {
  create,
  deletePods,
  endTerminating,
  everyPod,
  kubelet,
  muchLater,
  patchPods,
  podBecomes,
  podsSeen,
  type Scenario,
  scale,
} from './testing/scenario.ts'

const ready = kubelet(everyPod)

export const replicaSetScenarios: readonly Scenario[] = [
  { name: 'replica set: pods are created', events: true, steps: [create(replicaSet()), 'settle'] },
  { name: 'replica set: all ready', steps: [ready, create(replicaSet()), 'settle'] },
  { name: 'replica set: none wanted', steps: [create(replicaSet({ replicas: 0 })), 'settle'] },
  {
    name: 'replica set: scaled up, down and to none',
    steps: [
      ready,
      create(replicaSet({ replicas: 2 })),
      'settle',
      scale('ReplicaSet', 'web', 5),
      'settle',
      scale('ReplicaSet', 'web', 1),
      'settle',
      scale('ReplicaSet', 'web', 0),
      'settle',
    ],
  },
  {
    name: 'replica set: scaled down tells what it deleted',
    events: true,
    steps: [ready, create(replicaSet({ replicas: 2 })), 'settle', scale('ReplicaSet', 'web', 1), 'settle'],
  },
  { name: 'replica set: ready but not for long enough', steps: [ready, create(replicaSet({ minReadySeconds: 3600 })), 'settle'] },
  { name: 'replica set: available after its minimum time', steps: [ready, create(replicaSet({ minReadySeconds: 1 })), 'settle'] },
  {
    name: 'replica set: a failed pod is replaced and stays',
    steps: [ready, create(replicaSet()), 'settle', podBecomes(everyPod, 1, { phase: 'Failed', ready: false }), 'settle'],
  },
  {
    name: 'replica set: a finished pod is replaced',
    steps: [ready, create(replicaSet()), 'settle', podBecomes(everyPod, 1, { phase: 'Succeeded', ready: false }), 'settle'],
  },
  {
    name: 'replica set: a pod deleted by hand is replaced',
    steps: [ready, create(replicaSet()), 'settle', deletePods(everyPod, 2), 'settle'],
  },
  {
    name: 'replica set: a pod that is going does not count',
    steps: [
      ready,
      create(replicaSet({ replicas: 2, template: template(HELD) })),
      'settle',
      deletePods(everyPod, 1),
      'settle',
      endTerminating,
      'settle',
    ],
  },
  {
    name: 'replica set: an orphan is adopted',
    steps: [ready, create(pod('orphan')), podsSeen, create(replicaSet({ replicas: 2 })), 'settle'],
  },
  {
    name: 'replica set: more orphans than wanted',
    steps: [
      create(pod('one')),
      muchLater,
      create(pod('two')),
      create(pod('three')),
      podsSeen,
      create(replicaSet({ replicas: 1, template: template() })),
      'settle',
    ],
  },
  {
    name: 'replica set: an adopted pod lacks a label of the template',
    steps: [
      ready,
      create(pod('orphan')),
      podsSeen,
      create(replicaSet({ replicas: 2, template: template({ labels: { app: 'web', tier: 'front' } }) })),
      'settle',
    ],
  },
  {
    name: 'replica set: a pod whose label changed is let go',
    steps: [
      ready,
      create(replicaSet({ replicas: 2 })),
      'settle',
      patchPods(everyPod, 1, { metadata: { labels: { app: 'other' } } }),
      'settle',
    ],
  },
  {
    name: 'replica set: pods that are not ready go first',
    steps: [
      ready,
      create(replicaSet({ replicas: 4 })),
      'settle',
      kubelet(() => false),
      podBecomes(everyPod, 2, { phase: 'Running', ready: false }),
      podsSeen,
      scale('ReplicaSet', 'web', 2),
      'settle',
    ],
  },
  {
    name: 'replica set: pods that have not started go first',
    steps: [
      create(replicaSet({ replicas: 3 })),
      'settle',
      podBecomes(everyPod, 1, { phase: 'Running', ready: false }),
      podsSeen,
      scale('ReplicaSet', 'web', 1),
      'settle',
    ],
  },
  {
    name: 'replica set: the cheaper pod goes first',
    steps: [
      ready,
      create(replicaSet({ replicas: 3 })),
      'settle',
      patchPods(isReady, 1, { metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '100' } } }),
      podsSeen,
      scale('ReplicaSet', 'web', 1),
      'settle',
    ],
  },
  {
    name: 'replica set: pods are refused',
    steps: [create(replicaSet({ template: template({ serviceAccountName: 'absent' }) })), 'settle'],
  },
  {
    name: 'replica set: selector with expressions',
    steps: [
      ready,
      create(replicaSet({ selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web', 'www'] }] } })),
      'settle',
    ],
  },
]
