import type { Pod } from '@thv/kube/objects/builtin-kinds'
import type { ObjectMeta } from '@thv/kube/objects/types'

/** The part of a pod that the node reads, as the API server has validated and completed it. */
export interface NodePod extends Pod {
  metadata: ObjectMeta & { namespace: string; uid: string }
  spec: NodePodSpec
}

export interface NodePodSpec {
  containers: ContainerSpec[]
  initContainers?: ContainerSpec[]
  volumes?: VolumeSpec[]
  restartPolicy?: 'Always' | 'OnFailure' | 'Never'
  terminationGracePeriodSeconds?: number
  activeDeadlineSeconds?: number
  serviceAccountName?: string
  nodeName?: string
  hostname?: string
  readinessGates?: { conditionType: string }[]
  [field: string]: unknown
}

export interface ContainerSpec {
  name: string
  image?: string
  imagePullPolicy?: string
  command?: string[]
  args?: string[]
  workingDir?: string
  env?: EnvVar[]
  envFrom?: EnvFrom[]
  ports?: { name?: string; containerPort: number }[]
  resources?: { limits?: Record<string, string>; requests?: Record<string, string> }
  volumeMounts?: VolumeMount[]
  stdin?: boolean
  stdinOnce?: boolean
  terminationMessagePolicy?: string
  /** Of an init container: `Always` makes it a sidecar. */
  restartPolicy?: string
  startupProbe?: ProbeSpec
  readinessProbe?: ProbeSpec
  livenessProbe?: ProbeSpec
  lifecycle?: { postStart?: HandlerSpec; preStop?: HandlerSpec; stopSignal?: string }
  [field: string]: unknown
}

export interface EnvVar {
  name: string
  value?: string
  valueFrom?: {
    configMapKeyRef?: KeyRef
    secretKeyRef?: KeyRef
    fieldRef?: { fieldPath: string }
    resourceFieldRef?: ResourceFieldRef
    [field: string]: unknown
  }
}

export interface KeyRef {
  name?: string
  key: string
  optional?: boolean
}

export interface ResourceFieldRef {
  containerName?: string
  resource: string
  divisor?: string
}

export interface EnvFrom {
  prefix?: string
  configMapRef?: { name?: string; optional?: boolean }
  secretRef?: { name?: string; optional?: boolean }
}

export interface VolumeMount {
  name: string
  mountPath: string
  subPath?: string
  subPathExpr?: string
  readOnly?: boolean
}

export interface KeyToPath {
  key: string
  path: string
  mode?: number
}

export interface DownwardFile {
  path: string
  mode?: number
  fieldRef?: { fieldPath: string }
  resourceFieldRef?: ResourceFieldRef
}

export interface TokenSource {
  path: string
  audience?: string
  expirationSeconds?: number
}

export interface ProjectedSource {
  configMap?: { name?: string; items?: KeyToPath[]; optional?: boolean }
  secret?: { name?: string; items?: KeyToPath[]; optional?: boolean }
  downwardAPI?: { items?: DownwardFile[] }
  serviceAccountToken?: TokenSource
  [field: string]: unknown
}

export interface VolumeSpec {
  name: string
  configMap?: { name?: string; items?: KeyToPath[]; optional?: boolean; defaultMode?: number }
  secret?: { secretName?: string; items?: KeyToPath[]; optional?: boolean; defaultMode?: number }
  projected?: { sources?: ProjectedSource[]; defaultMode?: number }
  downwardAPI?: { items?: DownwardFile[]; defaultMode?: number }
  emptyDir?: object
  hostPath?: { path: string; type?: string }
  [field: string]: unknown
}

export interface HandlerSpec {
  exec?: { command?: string[] }
  httpGet?: HttpGetSpec
  tcpSocket?: { host?: string; port: number | string }
  sleep?: { seconds: number }
  grpc?: object
}

export interface HttpGetSpec {
  path?: string
  port: number | string
  host?: string
  scheme?: string
  httpHeaders?: { name: string; value: string }[]
}

export interface ProbeSpec extends HandlerSpec {
  initialDelaySeconds?: number
  periodSeconds?: number
  timeoutSeconds?: number
  successThreshold?: number
  failureThreshold?: number
  terminationGracePeriodSeconds?: number
}

const UID = /^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The pod with the types above. Undefined when a name in it could leave the pod's folder: the API server refuses such names, so
 * a sender of one is no API server.
 */
export function asNodePod(pod: Pod): NodePod | undefined {
  const { namespace, uid } = pod.metadata
  const spec = pod.spec as NodePodSpec | undefined
  if (namespace === undefined || uid === undefined || !UID.test(uid) || spec?.containers === undefined) return undefined
  const names = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.volumes ?? [])].map(({ name }) => name)
  return names.every((name) => LABEL.test(name)) ? (pod as NodePod) : undefined
}

export const DEFAULT_GRACE_SECONDS = 30

export function graceSecondsOf(pod: NodePod): number {
  return pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS
}

/** `name_namespace(uid)`, as a kubelet names a pod in its messages. */
export function podText({ metadata }: NodePod): string {
  return `${metadata.name}_${metadata.namespace}(${metadata.uid})`
}

export function isSidecar(container: ContainerSpec): boolean {
  return container.restartPolicy === 'Always'
}
