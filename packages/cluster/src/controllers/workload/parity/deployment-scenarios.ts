import { deployment, HELD, RECREATE, replicaSet, rolling, template } from './testing/objects.ts'
import {
  change,
  changeSetOf,
  create,
  deletePods,
  endTerminating,
  everyPod,
  kubelet,
  noPod,
  podBecomes,
  podsWith,
  rollTo,
  type Scenario,
  type Step,
  scale,
  untilThere,
} from './testing/scenario.ts'

const ready = kubelet(everyPod)
const onlyV1 = kubelet(podsWith('v1'))
const roll = (tag: string): Step => rollTo('Deployment', 'web', tag)
const size = (replicas: number): Step => scale('Deployment', 'web', replicas)
const spec = (body: object): Step => change('Deployment', 'web', { spec: body })

/** A new template whose pods never get ready. */
function stuck(name: string, made: Parameters<typeof deployment>[0], then: Scenario['steps'] = []): Scenario {
  return { name: `deployment: ${name}`, steps: [onlyV1, create(deployment(made)), 'settle', roll('v2'), 'settle', ...then] }
}

export const deploymentScenarios: readonly Scenario[] = [
  { name: 'deployment: nothing ready', events: true, steps: [create(deployment()), 'settle'] },
  { name: 'deployment: all ready', steps: [ready, create(deployment()), 'settle'] },
  { name: 'deployment: none wanted', steps: [create(deployment({ replicas: 0 })), 'settle', roll('v2'), 'settle'] },
  { name: 'deployment: rolled out', steps: [ready, create(deployment()), 'settle', roll('v2'), 'settle'] },
  stuck('default shares of four', { replicas: 4 }),
  stuck('default shares of ten', { replicas: 10 }),
  stuck('default shares of one', { replicas: 1 }),
  stuck('surge only', { replicas: 3, ...rolling('50%', 0) }),
  stuck('no surge', { replicas: 4, ...rolling(0, 1) }),
  stuck('shares that round to nothing', { replicas: 2, ...rolling('0%', '10%') }),
  stuck('all at once', { replicas: 3, ...rolling('100%', '100%') }),
  stuck('back to the old template in the middle', { replicas: 4 }, [roll('v1'), 'settle']),
  stuck('on to a third template in the middle', { replicas: 4 }, [kubelet(podsWith('v1', 'v3')), roll('v3'), 'settle']),
  stuck('scaled up in the middle', { replicas: 10, ...rolling(3, 2) }, [size(15), 'settle']),
  stuck('scaled down in the middle', { replicas: 10, ...rolling(3, 2) }, [size(5), 'settle']),
  stuck('scaled to none in the middle', { replicas: 4 }, [size(0), 'settle']),
  stuck('healed in the middle', { replicas: 4 }, [ready, 'settle']),
  {
    name: 'deployment: changed twice quickly',
    steps: [ready, create(deployment({ replicas: 4 })), 'settle', roll('v2'), untilThere('ReplicaSet', 'v2'), roll('v3'), 'settle'],
  },
  {
    name: 'deployment: back to the first revision',
    steps: [ready, create(deployment()), 'settle', roll('v2'), 'settle', roll('v1'), 'settle', roll('v2'), 'settle'],
  },
  {
    name: 'deployment: history is limited',
    steps: [
      ready,
      create(deployment({ replicas: 1, revisionHistoryLimit: 1 })),
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
    name: 'deployment: no history',
    steps: [ready, create(deployment({ replicas: 2, revisionHistoryLimit: 0 })), 'settle', roll('v2'), 'settle'],
  },
  {
    name: 'deployment: scaled',
    events: true,
    steps: [ready, create(deployment({ replicas: 2 })), 'settle', size(4), 'settle', size(1), 'settle', size(0), 'settle'],
  },
  { name: 'deployment: recreated', steps: [ready, create(deployment(RECREATE)), 'settle', roll('v2'), 'settle'] },
  {
    name: 'deployment: recreated when the last old pod is gone',
    events: true,
    steps: [
      ready,
      create(deployment({ ...RECREATE, replicas: 2, template: template(HELD) })),
      'settle',
      roll('v2'),
      'settle',
      endTerminating,
      'settle',
    ],
  },
  {
    name: 'deployment: scaled while recreating',
    steps: [ready, create(deployment(RECREATE)), 'settle', size(5), 'settle', size(1), 'settle'],
  },
  {
    name: 'deployment: paused from the start',
    steps: [ready, create(deployment({ paused: true })), 'settle', spec({ paused: false }), 'settle'],
  },
  {
    name: 'deployment: paused, changed, scaled, resumed',
    steps: [
      ready,
      create(deployment()),
      'settle',
      spec({ paused: true }),
      'settle',
      roll('v2'),
      'settle',
      size(5),
      'settle',
      spec({ paused: false }),
      'settle',
    ],
  },
  stuck('paused in the middle and scaled', { replicas: 10, ...rolling(3, 2) }, [spec({ paused: true }), 'settle', size(6), 'settle']),
  {
    name: 'deployment: no progress in time',
    steps: [create(deployment({ replicas: 2, progressDeadlineSeconds: 1 })), 'settle', ready, 'settle'],
  },
  {
    name: 'deployment: a rollout makes no progress in time',
    steps: [onlyV1, create(deployment({ replicas: 2, progressDeadlineSeconds: 1 })), 'settle', roll('v2'), 'settle', roll('v1'), 'settle'],
  },
  {
    name: 'deployment: no deadline',
    steps: [onlyV1, create(deployment({ replicas: 2, progressDeadlineSeconds: 2 ** 31 - 1 })), 'settle', roll('v2'), 'settle'],
  },
  {
    name: 'deployment: ready but not for long enough',
    steps: [ready, create(deployment({ minReadySeconds: 300 })), 'settle', roll('v2'), 'settle'],
  },
  {
    name: 'deployment: minimum time changed',
    steps: [ready, create(deployment({ minReadySeconds: 300 })), 'settle', spec({ minReadySeconds: 0 }), 'settle'],
  },
  {
    name: 'deployment: its annotations are on the newest set',
    steps: [
      ready,
      create(deployment({ replicas: 1 }, { team: 'red', 'kubernetes.io/change-cause': 'first' })),
      'settle',
      change('Deployment', 'web', { metadata: { annotations: { 'kubernetes.io/change-cause': 'second' } } }),
      'settle',
      roll('v2'),
      'settle',
    ],
  },
  { name: 'deployment: pods are refused', steps: [create(deployment({ template: template({ serviceAccountName: 'absent' }) })), 'settle'] },
  { name: 'deployment: a pod deleted by hand', steps: [ready, create(deployment()), 'settle', deletePods(everyPod, 2), 'settle'] },
  {
    name: 'deployment: its set scaled by hand is put back',
    steps: [ready, create(deployment()), 'settle', changeSetOf('v1', { spec: { replicas: 6 } }), 'settle'],
  },
  {
    name: 'deployment: a set with its template is adopted',
    steps: [ready, create(replicaSet({ replicas: 2 })), 'settle', create(deployment({ replicas: 3 })), 'settle'],
  },
  {
    name: 'deployment: a pod gets unready',
    steps: [
      ready,
      create(deployment({ replicas: 4 })),
      'settle',
      kubelet(noPod),
      podBecomes(everyPod, 2, { phase: 'Running', ready: false }),
      'settle',
    ],
  },
  {
    name: 'deployment: shares changed in the middle',
    steps: [
      onlyV1,
      create(deployment({ replicas: 4 })),
      'settle',
      roll('v2'),
      'settle',
      spec({ strategy: { rollingUpdate: { maxSurge: 2, maxUnavailable: 2 } } }),
      'settle',
    ],
  },
]
