import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, type KindRules, textAt } from '../../objects/served-kind.ts'
import { withoutDisabled } from './disabled-fields.ts'
import { admitPod } from './pod-admission.ts'
import { podDefaults } from './pod-defaults.ts'
import { permitPod } from './pod-security.ts'
import { podUpdateProblems } from './pod-update.ts'
import { qosClassOf } from './qos-class.ts'
import { keptStatus, podStatus, statusOf } from './status-shape.ts'
import { podStatusProblems } from './status-validation.ts'
import { changed, numberAt, objectAt, objectsAt } from './validation/fields.ts'
import { newPodProblems, podProblems } from './validation/pod-validation.ts'

export const podRules: KindRules = plainRules('subdomain', {
  generation: ['spec'],
  returnsDeleted: true,
  applyDefaults: (pod) => changed(podDefaults(pod), 'status', podStatus),
  allocate: admitPod,
  prepareCreate: (pod) => {
    const enabled = changed(pod, 'spec', withoutDisabled)
    return { ...enabled, status: { phase: 'Pending', ...gated(pod), qosClass: qosClassOf(objectAt(enabled, 'spec') ?? {}) } }
  },
  prepareUpdate: (pod) => changed(pod, 'spec', withoutDisabled),
  prepareStatus: (pod, old) => changed(pod, 'status', (status) => keptStatus(status, statusOf(old))),
  validate: (pod, old) => [...podProblems(pod), ...(old ? podUpdateProblems(pod, old) : newPodProblems(pod))],
  permit: permitPod,
  validateStatus: podStatusProblems,
  gracePeriod: (pod, asked) => {
    const period = asked ?? numberAt(pod, 'spec', 'terminationGracePeriodSeconds') ?? 30
    // It runs on no node, so no node has to stop it.
    if (textAt(pod, 'spec', 'nodeName') === '') return 0
    if (['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'))) return 0
    return period < 0 ? 1 : period
  },
  selectable: {
    'spec.nodeName': (pod) => textAt(pod, 'spec', 'nodeName'),
    'spec.restartPolicy': (pod) => textAt(pod, 'spec', 'restartPolicy'),
    'spec.hostNetwork': (pod) => String(at(pod, 'spec', 'hostNetwork') === true),
    'spec.schedulerName': (pod) => textAt(pod, 'spec', 'schedulerName'),
    'spec.serviceAccountName': (pod) => textAt(pod, 'spec', 'serviceAccountName'),
    'status.phase': (pod) => textAt(pod, 'status', 'phase'),
    'status.podIP': (pod) => textAt(pod, 'status', 'podIP'),
    // May be asked for, but the real server compares it with nothing.
    'status.podIPs': () => '',
    'status.nominatedNodeName': (pod) => textAt(pod, 'status', 'nominatedNodeName'),
  },
})

function gated(pod: JsonObject): JsonObject {
  if (objectsAt(pod, 'spec', 'schedulingGates').length === 0) return {}
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: at(pod, 'metadata', 'creationTimestamp') ?? null,
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
  }
  return { conditions: [condition] }
}
