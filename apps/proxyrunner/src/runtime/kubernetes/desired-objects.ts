import type { OwnerReference, Service, StatefulSet } from '@thv/kube'
import type { Platform } from '@thv/kube/objects/pod-security'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runtimeError } from '../runtime-errors.ts'
import { GENERATION_ANNOTATION, podTemplate, portName } from './pod-template.ts'

export interface DesiredOptions {
  readonly namespace: string
  readonly platform?: Platform
}

export interface DesiredObjects {
  readonly statefulSet: StatefulSet
  /** The headless one first; it is all there is for stdio. */
  readonly services: readonly Service[]
}

/** Names and labels by which everybody finds the workload of a server: StatefulSet, Services, NetworkPolicy, attach. */
export interface WorkloadNames {
  readonly statefulSet: string
  readonly headlessService: string
  readonly service: string
  readonly selector: Readonly<Record<string, string>>
}

export function workloadNames({ container_name: name }: RunConfig): WorkloadNames {
  return {
    statefulSet: name,
    headlessService: `mcp-${name}-headless`,
    service: `mcp-${name}`,
    selector: { app: name, 'toolhive-basename': name },
  }
}

/** All that must exist in the cluster for this config. Pure. Throws `runtime_unsuitable` for a config that cannot exist there. */
export function desiredObjects(config: RunConfig, { namespace, platform = 'kubernetes' }: DesiredOptions): DesiredObjects {
  checkSuitable(config)
  const names = workloadNames(config)
  const labels = workloadLabels(config, names)
  const metadata = (name: string) => ({ name, namespace, labels, ...ownerReferences(config) })
  const ports = containerPorts(config)
  const replicas = config.scaling_config.backend_replicas

  const statefulSet: StatefulSet = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { ...metadata(names.statefulSet), ...generationGuard(config) },
    spec: {
      // The pods do not need each other; and with the other policy one that cannot start is never replaced by a corrected one.
      podManagementPolicy: 'Parallel',
      serviceName: names.headlessService,
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: { ...names.selector } },
      template: podTemplate({ config, labels, ports, platform }),
    },
  }
  const service = (name: string, spec: NonNullable<Service['spec']>): Service => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(name),
    spec: { ...spec, selector: { ...names.selector } },
  })
  const headless = service(names.headlessService, {
    clusterIP: 'None',
    ...(ports.length > 0 && { ports: ports.map((port) => servicePort(port)) }),
  })
  return { statefulSet, services: ports.length === 0 ? [headless] : [headless, service(names.service, clusterService(config, ports))] }
}

/** The Service that the proxy forwards to. Legacy sessions live in one pod, so a client stays on its pod. */
function clusterService(config: RunConfig, ports: readonly number[]): NonNullable<Service['spec']> {
  const nodePorts = new Map(published(config).flatMap(({ host, container }) => (isNodePort(host) ? [[container, host]] : [])))
  return {
    type: nodePorts.size > 0 ? 'NodePort' : 'ClusterIP',
    ports: ports.map((port) => servicePort(port, nodePorts.get(port))),
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 1800 } },
  }
}

function servicePort(port: number, nodePort?: number) {
  return { name: portName(port), port, targetPort: port, protocol: 'TCP', ...(nodePort !== undefined && { nodePort }) }
}

function containerPorts(config: RunConfig): number[] {
  if (config.transport === 'stdio') return []
  return [...new Set([config.target_port, ...published(config).map(({ container }) => container)])]
}

function published({ publish }: RunConfig): { host: number; container: number }[] {
  return publish.map((text) => {
    const [host = 0, container = 0] = text.split(':').map(Number)
    return { host, container }
  })
}

const isNodePort = (port: number) => port >= 30_000 && port <= 32_767

/** Selector labels win over the document. */
function workloadLabels(config: RunConfig, { selector }: WorkloadNames): Record<string, string> {
  return {
    'toolhive-name': config.name,
    'toolhive-transport': config.transport,
    'toolhive-port': String(config.port),
    ...config.container_labels,
    toolhive: 'true',
    ...selector,
  }
}

/** On the StatefulSet itself: in the template it would replace the pods with every change that concerns the proxy alone. */
function generationGuard({ mcpserver_generation: generation }: RunConfig): { annotations?: Record<string, string> } {
  return generation > 0 ? { annotations: { [GENERATION_ANNOTATION]: String(generation) } } : {}
}

/** Without blockOwnerDeletion the runner needs no right on the owner. */
function ownerReferences({ owner }: RunConfig): { ownerReferences?: OwnerReference[] } {
  if (owner === undefined) return {}
  const { api_version: apiVersion, kind, name, uid } = owner
  return { ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: false }] }
}

/** A longer name would make labels of pods that the API server refuses when it is too late to say so. */
const NAME = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const MAX_NAME = 46

function checkSuitable(config: RunConfig): void {
  const { container_name: name, transport, target_port: port, secrets } = config
  const refuse = (message: string) => {
    throw runtimeError('runtime_unsuitable', message)
  }
  if (!NAME.test(name) || name.length > MAX_NAME) {
    refuse(`container_name: in a cluster a name of at most ${MAX_NAME} characters is needed that begins with a letter`)
  }
  if (transport !== 'stdio' && port === 0) refuse('target_port: in a cluster the port that the server listens on must be named')
  if (secrets.length > 0)
    refuse('secrets: in a cluster secrets are given by reference in k8s_pod_template_patch, so that they stay in Secrets')
}
