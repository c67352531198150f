import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import { isObject, type KindRules, textAt, without } from '../../objects/served-kind.ts'
import { allocateForService } from './service-allocation.ts'
import { withServiceDefaults } from './service-defaults.ts'
import { draftOf, isOpen, needsAddress, needsHealthCheck, type ServiceDraft, sameTexts, specOf, withDraft } from './service-spec.ts'
import { serviceProblems, serviceStatusProblems } from './service-validation.ts'

export const serviceRules: KindRules = plainRules('label1035', {
  returnsDeleted: true,
  createOnUpdate: true,
  applyDefaults: withServiceDefaults,
  allocate: allocateForService,
  prepareCreate: (service) => withoutInnerPolicy({ ...service, status: { loadBalancer: {} } }),
  prepareUpdate: (service, old) => withoutInnerPolicy(withoutForeign(service, old)),
  validate: serviceProblems,
  validateStatus: serviceStatusProblems,
  selectable: {
    'spec.clusterIP': (service) => textAt(service, 'spec', 'clusterIP'),
    'spec.type': (service) => textAt(service, 'spec', 'type'),
  },
})

/** An external name has no traffic to direct. */
function withoutInnerPolicy(service: JsonObject): JsonObject {
  if (textAt(service, 'spec', 'type') !== 'ExternalName') return service
  return { ...service, spec: without(specOf(service), 'internalTrafficPolicy') }
}

/** Fields of the old type that the client has not touched go with it; those that it has changed are left to be rejected. */
function withoutForeign(service: JsonObject, old: JsonObject): JsonObject {
  const [draft, before] = [draftOf(service), draftOf(old)]
  const spec = specOf(service)
  const same = (name: string) => spec[name] === specOf(old)[name]
  forgetAddress(draft, before)
  if (isOpen(before) && !isOpen(draft) && keepsNodePorts(draft, before)) for (const port of draft.ports) port.nodePort = 0
  if (needsHealthCheck(before) && !needsHealthCheck(draft) && draft.healthCheckNodePort === before.healthCheckNodePort)
    draft.healthCheckNodePort = 0
  const balanced = before.type === 'LoadBalancer' && draft.type !== 'LoadBalancer'
  const gone = [
    ...(balanced && same('allocateLoadBalancerNodePorts') ? ['allocateLoadBalancerNodePorts'] : []),
    ...(balanced && same('loadBalancerClass') ? ['loadBalancerClass'] : []),
    ...(isReachable(old) && !isReachable(service) && same('externalTrafficPolicy') ? ['externalTrafficPolicy'] : []),
  ]
  const status = service['status']
  const kept = withDraft({ ...service, spec: without(spec, ...gone) }, draft)
  return draft.type === 'LoadBalancer' ? kept : { ...kept, status: { ...(isObject(status) ? status : {}), loadBalancer: {} } }
}

function forgetAddress(draft: ServiceDraft, before: ServiceDraft): void {
  if (!needsAddress(before) || needsAddress(draft)) return
  if (draft.clusterIP === before.clusterIP && sameTexts(draft.clusterIPs, before.clusterIPs)) {
    draft.clusterIP = ''
    draft.clusterIPs = []
  }
  if (sameTexts(draft.families, before.families)) draft.families = []
  if (draft.policy === before.policy) draft.policy = undefined
}

/** No node port is new. */
function keepsNodePorts(draft: ServiceDraft, before: ServiceDraft): boolean {
  const had = new Set(before.ports.map(({ nodePort }) => nodePort))
  return draft.ports.every(({ nodePort }) => nodePort === 0 || had.has(nodePort))
}

function isReachable(service: JsonObject): boolean {
  const external = specOf(service)['externalIPs']
  const draft = draftOf(service)
  return isOpen(draft) || (draft.type === 'ClusterIP' && Array.isArray(external) && external.length > 0)
}
