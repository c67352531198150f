import type { Container, PodSpec, PodTemplateSpec } from '@thv/kube'
import { TMP_VOLUME } from '@thv/kube/objects/implied-volumes'
import { type Platform, withSecurityContexts } from '@thv/kube/objects/pod-security'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { JsonObject } from '@thv/runconfig/value-readers'
import { type EnvVar, mergeEnv } from './container-env.ts'

/** The container that runs the MCP server; others in the pod patch are sidecars. */
export const MCP_CONTAINER = 'mcp'
export const GENERATION_ANNOTATION = 'toolhive.stacklok.dev/mcpserver-generation'

/** Many servers wait for the end of their input and know no signals; their input cannot be ended from outside, so they would use the whole grace period. */
const STDIO_GRACE_SECONDS = 10

export interface PodTemplateOptions {
  readonly config: RunConfig
  readonly labels: Readonly<Record<string, string>>
  /** Ports that the MCP container listens on. */
  readonly ports: readonly number[]
  readonly platform: Platform
}

/** The pod patch with what must be laid over it. */
export function podTemplate({ config, labels, ports, platform }: PodTemplateOptions): PodTemplateSpec {
  const patch = config.k8s_pod_template_patch ?? {}
  const metadata = objectAt(patch, 'metadata')
  const annotations = textsAt(metadata, 'annotations')
  return {
    metadata: {
      labels: { ...textsAt(metadata, 'labels'), ...labels },
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: withSecurityContexts(podSpec(config, objectAt(patch, 'spec'), ports), platform),
  }
}

function podSpec(config: RunConfig, patch: JsonObject, ports: readonly number[]): PodSpec {
  const given = listAt<Container>(patch, 'containers')
  const own = given.find(({ name }) => name === MCP_CONTAINER)
  const server = mcpContainer(config, own ?? { name: MCP_CONTAINER }, ports)
  const containers = own === undefined ? [...given, server] : given.map((container) => (container === own ? server : container))
  const initContainers = listAt<Container>(patch, 'initContainers')
  return {
    restartPolicy: 'Always',
    enableServiceLinks: false,
    ...(config.transport === 'stdio' && { terminationGracePeriodSeconds: STDIO_GRACE_SECONDS }),
    ...patch,
    volumes: volumesOf(config, listAt<Volume>(patch, 'volumes'), listAt<VolumeMount>(own ?? {}, 'volumeMounts')),
    containers: containers.map(withTmp),
    ...(initContainers.length > 0 && { initContainers: initContainers.map(withTmp) }),
  }
}

function mcpContainer(config: RunConfig, patch: Container, ports: readonly number[]): Container {
  const mounts = listAt<VolumeMount>(patch, 'volumeMounts')
  const ownMounts = hostFolders(config, mounts).map(({ name, mountPath, readOnly }) => ({ name, mountPath, ...(readOnly && { readOnly }) }))
  const { args: _, ...rest } = patch
  const args = config.cmd_args.length > 0 ? config.cmd_args : patch['args']
  return {
    ...rest,
    image: config.image,
    ...(args !== undefined && { args }),
    stdin: config.transport === 'stdio',
    tty: false,
    env: mergeEnv({ forced: transportVariables(config), vars: config.env_vars, patch: listAt<EnvVar>(patch, 'env') }),
    ...withItems('ports', mergePorts(listAt<ContainerPort>(patch, 'ports'), ports)),
    ...withItems('volumeMounts', [...mounts, ...ownMounts]),
  }
}

function transportVariables({ transport, target_port: port, target_host: host }: RunConfig): Record<string, string> {
  if (transport === 'stdio') return { MCP_TRANSPORT: transport }
  // All addresses of the pod unless told otherwise: the proxy is in another pod.
  return { MCP_TRANSPORT: transport, MCP_PORT: String(port), FASTMCP_PORT: String(port), MCP_HOST: host ?? '0.0.0.0' }
}

interface ContainerPort {
  readonly name?: string
  readonly containerPort: number
  readonly protocol?: string
}

function mergePorts(given: readonly ContainerPort[], ports: readonly number[]): ContainerPort[] {
  const isGiven = (port: number) => given.some(({ containerPort, protocol = 'TCP' }) => containerPort === port && protocol === 'TCP')
  return [
    ...given,
    ...ports.filter((port) => !isGiven(port)).map((port) => ({ name: portName(port), containerPort: port, protocol: 'TCP' })),
  ]
}

export function portName(port: number): string {
  return `port-${port}`
}

interface Volume {
  readonly name: string
  readonly [source: string]: unknown
}

interface VolumeMount {
  readonly name: string
  readonly mountPath: string
}

/** `volumes` of the config: folders of the node. What the patch mounts at the same place wins. */
function hostFolders(config: RunConfig, mounts: readonly VolumeMount[]) {
  return config.volumes
    .map((text, index) => {
      const [hostPath = '', mountPath = '', mode] = text.split(':')
      return { name: `thv-volume-${index}`, hostPath, mountPath, readOnly: mode === 'ro' }
    })
    .filter((folder) => !mounts.some(({ mountPath }) => mountPath === folder.mountPath))
}

function volumesOf(config: RunConfig, given: readonly Volume[], mounts: readonly VolumeMount[]): Volume[] {
  const own: Volume[] = hostFolders(config, mounts).map(({ name, hostPath }) => ({ name, hostPath: { path: hostPath } }))
  own.push({ name: TMP_VOLUME, emptyDir: {} })
  return [...given, ...own.filter(({ name }) => !given.some((volume) => volume.name === name))]
}

/** The root of every container is read-only, and hardly a program gets by without /tmp. */
function withTmp(container: Container): Container {
  const mounts = listAt<VolumeMount>(container, 'volumeMounts')
  if (mounts.some(({ mountPath }) => /^\/tmp\/?$/.test(mountPath))) return container
  return { ...container, volumeMounts: [...mounts, { name: TMP_VOLUME, mountPath: '/tmp' }] }
}

function withItems<T>(key: string, items: readonly T[]): Record<string, readonly T[]> {
  return items.length === 0 ? {} : { [key]: items }
}

function objectAt(parent: JsonObject, key: string): JsonObject {
  const value = parent[key]
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}

function textsAt(parent: JsonObject, key: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(objectAt(parent, key)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** The reader has seen to it that containers are objects with names; the API server checks what is inside. */
function listAt<T>(parent: Readonly<Record<string, unknown>>, key: string): T[] {
  const value = parent[key]
  return Array.isArray(value) ? (value as T[]) : []
}
