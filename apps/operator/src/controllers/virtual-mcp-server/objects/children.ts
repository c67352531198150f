import { createHash } from 'node:crypto'
import type { ConditionUpdate, ConfigMap, Service, ServiceAccount } from '@thv/kube'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { MANAGED_BY, MANAGED_BY_LABEL } from '../../../caches/cache-shapes.ts'
import { pullSecrets } from '../../../deployment/template/pull-secrets.ts'
import type { OperatorSettings } from '../../../operator-settings.ts'
import { workloadLabels } from '../../../proxy/labels.ts'
import { isReservedServiceName, virtualServerNames } from '../../../proxy/names.ts'
import { CONFIG_FILE, VMCP_PORT } from './deployment.ts'

export interface Place {
  readonly name: string
  readonly namespace: string
}

const CONTENT_CHECKSUM = 'toolhive.stacklok.dev/content-checksum'

function checksumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

export function configMapOf({ name, namespace }: Place, text: string): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: virtualServerNames(name).config,
      namespace,
      labels: {
        'toolhive.stacklok.io/component': 'vmcp-config',
        [MANAGED_BY_LABEL]: MANAGED_BY,
        'toolhive.stacklok.io/virtual-mcp-server': name,
      },
      annotations: { [CONTENT_CHECKSUM]: checksumOf(text) },
    },
    data: { [CONFIG_FILE]: text },
  }
}

/** Pods say themselves whether they want its token. */
export function accountOf(
  { name, namespace }: Place,
  { spec, settings }: { spec: CanonicalVirtualMCPServerSpec; settings: Pick<OperatorSettings, 'defaultImagePullSecrets'> },
): ServiceAccount {
  const secrets = pullSecrets(settings.defaultImagePullSecrets, spec.imagePullSecrets)
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: virtualServerNames(name).account, namespace, labels: workloadLabels('VirtualMCPServer', name) },
    automountServiceAccountToken: false,
    ...(secrets.length > 0 && { imagePullSecrets: secrets }),
  }
}

/** Where clients reach the virtual server. */
export function serviceOf(place: Place, spec: CanonicalVirtualMCPServerSpec): Service {
  const service = plainService(place, virtualServerNames(place.name).service, spec)
  return { ...service, spec: { ...service.spec, type: spec.serviceType } }
}

export interface Alias {
  /** Undefined when none is made; one that we made before is then to be deleted. */
  readonly service: Service | undefined
  readonly conditions: readonly ConditionUpdate[]
}

/** The Service that is named like the resource: routes are written to it. Reachable in the cluster only, whatever `serviceType` says. */
export function aliasOf(place: Place, spec: CanonicalVirtualMCPServerSpec): Alias {
  const { aliasService: alias, service } = virtualServerNames(place.name)
  if (!isReservedServiceName(alias)) return { service: plainService(place, alias, spec), conditions: [] }
  const message = `No Service ${alias} is made, because names that begin with mcp- or vmcp- belong to other Services: use ${service}, or give the resource another name.`
  return { service: undefined, conditions: [skipped(WorkloadReason.ServiceNameReserved, message)] }
}

/** When a Service of somebody else has the name. */
export function aliasTaken(name: string): ConditionUpdate {
  const { service } = virtualServerNames(name)
  const message = `No Service ${name} is made, because one of that name exists that is not ours: use ${service}, or delete the other one.`
  return skipped(WorkloadReason.ServiceNameTaken, message)
}

function skipped(reason: string, message: string): ConditionUpdate {
  return { type: WorkloadCondition.ServiceAliasSkipped, status: 'True', reason, message }
}

function plainService({ name, namespace }: Place, serviceName: string, { sessionAffinity }: CanonicalVirtualMCPServerSpec): Service {
  const labels = workloadLabels('VirtualMCPServer', name)
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName, namespace, labels },
    spec: {
      type: 'ClusterIP',
      selector: labels,
      ports: [{ name: 'http', port: VMCP_PORT, targetPort: VMCP_PORT, protocol: 'TCP' }],
      sessionAffinity,
    },
  }
}

/** Full names of the Services: a virtual server on a loopback address answers to no other cluster names. */
export function serviceHostsOf({ name, namespace }: Place, clusterDomain: string): string[] {
  const { service, aliasService } = virtualServerNames(name)
  const names = isReservedServiceName(aliasService) ? [service] : [service, aliasService]
  return names.map((each) => `${each}.${namespace}.svc.${clusterDomain}`)
}

/** `status.url`. */
export function urlOf({ name, namespace }: Place, clusterDomain: string): string {
  return `http://${virtualServerNames(name).service}.${namespace}.svc.${clusterDomain}:${VMCP_PORT}/mcp`
}
