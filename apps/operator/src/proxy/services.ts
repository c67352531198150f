import type { ConditionUpdate, Service } from '@thv/kube'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { withOwnKeys, workloadLabels } from './labels.ts'
import { isReservedServiceName, type ProxyKind, proxyNames } from './names.ts'

export interface ServiceInput {
  readonly kind: ProxyKind
  readonly name: string
  readonly namespace: string
  readonly spec: Pick<CanonicalMCPServerSpec, 'proxyPort' | 'serviceType' | 'sessionAffinity' | 'resourceOverrides'>
}

/** Where clients reach the proxy. */
export function proxyService(input: ServiceInput): Service {
  const { kind, name, spec } = input
  const { labels, annotations } = spec.resourceOverrides.proxyService
  const service = plainService(input, proxyNames(kind, name).service)
  return {
    ...service,
    metadata: {
      ...service.metadata,
      labels: withOwnKeys(labels, workloadLabels(kind, name)),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: { ...service.spec, type: spec.serviceType },
  }
}

export interface AliasService {
  /** Undefined when none is made; one that we made before is then to be deleted. */
  readonly service?: Service
  /** `ServiceAliasSkipped` when none is made; empty otherwise, so that the condition goes. */
  readonly conditions: readonly ConditionUpdate[]
}

/** The Service that is named like the workload: routes are written to it. Reachable in the cluster only, whatever `serviceType` says. */
export function aliasService(input: ServiceInput): AliasService {
  const { aliasService: alias, service } = proxyNames(input.kind, input.name)
  if (!isReservedServiceName(alias)) return { service: plainService(input, alias), conditions: [] }
  const message = `No Service ${alias} is made, because names that begin with mcp- or vmcp- belong to other Services: use ${service}, or give the resource another name.`
  return {
    conditions: [{ type: WorkloadCondition.ServiceAliasSkipped, status: 'True', reason: WorkloadReason.ServiceNameReserved, message }],
  }
}

/** When a Service of somebody else has the name. */
export function aliasTaken(kind: ProxyKind, name: string): ConditionUpdate {
  const { aliasService: alias, service } = proxyNames(kind, name)
  return {
    type: WorkloadCondition.ServiceAliasSkipped,
    status: 'True',
    reason: WorkloadReason.ServiceNameTaken,
    message: `No Service ${alias} is made, because one of that name exists that is not ours: use ${service}, or delete the other one.`,
  }
}

function plainService({ kind, name, namespace, spec }: ServiceInput, serviceName: string): Service {
  const labels = workloadLabels(kind, name)
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName, namespace, labels },
    spec: {
      type: 'ClusterIP',
      selector: labels,
      ports: [{ name: 'http', port: spec.proxyPort, targetPort: spec.proxyPort, protocol: 'TCP' }],
      sessionAffinity: spec.sessionAffinity,
    },
  }
}
