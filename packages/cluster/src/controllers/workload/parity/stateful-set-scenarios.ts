import type { Pod } from '@thv/kube'
import { HELD, pod, statefulSet, template } from './testing/objects.ts'
import {
  change,
  create,
  deletePods,
  endTerminating,
  everyPod,
  kubelet,
  noPod,
  patchPods,
  podBecomes,
  podsSeen,
  podsWith,
  rollTo,
  type Scenario,
  type Step,
  scale,
  untilThere,
} from './testing/scenario.ts'

const ready = kubelet(everyPod)
const onlyV1 = kubelet(podsWith('v1'))
const roll = (tag: string): Step => rollTo('StatefulSet', 'web', tag)
const size = (replicas: number): Step => scale('StatefulSet', 'web', replicas)
const spec = (body: object): Step => change('StatefulSet', 'web', { spec: body })
const called =
  (name: string) =>
  ({ metadata }: Pod): boolean =>
    metadata.name === name
const PARALLEL = { podManagementPolicy: 'Parallel' }
const ON_DELETE = { updateStrategy: { type: 'OnDelete' } }
const partition = (place: number) => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: place } } })

export const statefulSetScenarios: readonly Scenario[] = [
  { name: 'stateful set: the first pod is waited for', events: true, steps: [create(statefulSet()), 'settle'] },
  { name: 'stateful set: all ready', events: true, steps: [ready, create(statefulSet()), 'settle'] },
  { name: 'stateful set: the second pod is waited for', steps: [kubelet(called('web-0')), create(statefulSet()), 'settle'] },
  { name: 'stateful set: none wanted', steps: [create(statefulSet({ replicas: 0 })), 'settle'] },
  { name: 'stateful set: all at once', steps: [create(statefulSet(PARALLEL)), 'settle', ready, 'settle'] },
  { name: 'stateful set: other numbers', steps: [ready, create(statefulSet({ replicas: 2, ordinals: { start: 5 } })), 'settle'] },
  {
    name: 'stateful set: numbers changed',
    steps: [ready, create(statefulSet({ replicas: 2 })), 'settle', spec({ ordinals: { start: 1 } }), 'settle'],
  },
  {
    name: 'stateful set: scaled',
    events: true,
    steps: [ready, create(statefulSet({ replicas: 1 })), 'settle', size(4), 'settle', size(2), 'settle', size(0), 'settle'],
  },
  {
    name: 'stateful set: all at once, scaled',
    steps: [ready, create(statefulSet({ ...PARALLEL, replicas: 2 })), 'settle', size(5), 'settle', size(1), 'settle'],
  },
  {
    name: 'stateful set: the highest goes first and is waited for',
    steps: [
      ready,
      create(statefulSet({ template: template(HELD) })),
      'settle',
      size(1),
      'settle',
      endTerminating,
      'settle',
      endTerminating,
      'settle',
    ],
  },
  {
    name: 'stateful set: does not grow while a pod is not ready',
    steps: [
      ready,
      create(statefulSet()),
      'settle',
      kubelet(noPod),
      podBecomes(called('web-1'), 1, { phase: 'Running', ready: false }),
      podsSeen,
      size(5),
      'settle',
    ],
  },
  {
    name: 'stateful set: does not shrink while a pod is not ready',
    steps: [
      ready,
      create(statefulSet()),
      'settle',
      kubelet(noPod),
      podBecomes(called('web-0'), 1, { phase: 'Running', ready: false }),
      podsSeen,
      size(1),
      'settle',
    ],
  },
  { name: 'stateful set: rolled out', steps: [ready, create(statefulSet()), 'settle', roll('v2'), 'settle'] },
  { name: 'stateful set: all at once, rolled out', steps: [ready, create(statefulSet(PARALLEL)), 'settle', roll('v2'), 'settle'] },
  {
    name: 'stateful set: a rollout stops at the first pod that is not ready',
    events: true,
    steps: [onlyV1, create(statefulSet()), 'settle', roll('v2'), 'settle'],
  },
  {
    name: 'stateful set: all at once, a rollout stops too',
    steps: [onlyV1, create(statefulSet(PARALLEL)), 'settle', roll('v2'), 'settle'],
  },
  {
    name: 'stateful set: back from a broken template needs a hand',
    steps: [onlyV1, create(statefulSet()), 'settle', roll('v2'), 'settle', roll('v1'), 'settle', deletePods(called('web-2'), 1), 'settle'],
  },
  {
    name: 'stateful set: partition',
    steps: [ready, create(statefulSet(partition(2))), 'settle', roll('v2'), 'settle', spec(partition(1)), 'settle'],
  },
  {
    name: 'stateful set: a pod below the partition comes back old',
    steps: [ready, create(statefulSet(partition(2))), 'settle', roll('v2'), 'settle', deletePods(called('web-0'), 1), 'settle'],
  },
  { name: 'stateful set: partition beyond the end', steps: [ready, create(statefulSet(partition(9))), 'settle', roll('v2'), 'settle'] },
  {
    name: 'stateful set: replaced only when deleted',
    steps: [ready, create(statefulSet(ON_DELETE)), 'settle', roll('v2'), 'settle', deletePods(called('web-1'), 1), 'settle'],
  },
  {
    name: 'stateful set: back to the first revision',
    steps: [ready, create(statefulSet({ replicas: 2 })), 'settle', roll('v2'), 'settle', roll('v1'), 'settle'],
  },
  {
    name: 'stateful set: history is limited',
    steps: [
      ready,
      create(statefulSet({ replicas: 1, revisionHistoryLimit: 1 })),
      'settle',
      roll('v2'),
      'settle',
      roll('v3'),
      'settle',
      roll('v4'),
      'settle',
    ],
  },
  {
    name: 'stateful set: changed twice quickly',
    steps: [ready, create(statefulSet()), 'settle', roll('v2'), untilThere('ControllerRevision', 'v2'), roll('v3'), 'settle'],
  },
  {
    name: 'stateful set: a failed pod is replaced',
    events: true,
    steps: [ready, create(statefulSet()), 'settle', podBecomes(called('web-1'), 1, { phase: 'Failed', ready: false }), 'settle'],
  },
  {
    name: 'stateful set: a failed pod that is held is waited for',
    steps: [
      ready,
      create(statefulSet({ template: template(HELD) })),
      'settle',
      podBecomes(called('web-1'), 1, { phase: 'Failed', ready: false }),
      'settle',
    ],
  },
  {
    name: 'stateful set: a pod deleted by hand comes back',
    steps: [ready, create(statefulSet()), 'settle', deletePods(called('web-1'), 1), 'settle'],
  },
  { name: 'stateful set: ready but not for long enough', steps: [ready, create(statefulSet({ minReadySeconds: 300 })), 'settle'] },
  {
    name: 'stateful set: available after its minimum time',
    steps: [ready, create(statefulSet({ replicas: 2, minReadySeconds: 1 })), 'settle'],
  },
  {
    name: 'stateful set: an orphan with the right name is adopted',
    steps: [ready, create(pod('web-1')), podsSeen, create(statefulSet()), 'settle'],
  },
  {
    name: 'stateful set: an orphan with another name is left alone',
    steps: [ready, create(pod('other-1')), podsSeen, create(statefulSet({ replicas: 1 })), 'settle'],
  },
  {
    name: 'stateful set: the label with the name is put back',
    steps: [
      ready,
      create(statefulSet({ replicas: 2 })),
      'settle',
      patchPods(called('web-0'), 1, { metadata: { labels: { 'statefulset.kubernetes.io/pod-name': 'wrong' } } }),
      'settle',
    ],
  },
  {
    name: 'stateful set: pods are refused',
    steps: [create(statefulSet({ template: template({ serviceAccountName: 'absent' }) })), 'settle'],
  },
]
