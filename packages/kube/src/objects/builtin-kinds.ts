import type { KubeObject } from './types.ts'

/**
 * The built-in kinds that the project touches. Their types say only what code here reads or writes; everything else passes
 * through untouched, as `unknown` members.
 */

export interface Namespace extends KubeObject {
  status?: { phase?: string; [field: string]: unknown }
}

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>
  binaryData?: Record<string, string>
  immutable?: boolean
}

export interface Secret extends KubeObject {
  type?: string
  /** Values are base64. */
  data?: Record<string, string>
  stringData?: Record<string, string>
  immutable?: boolean
}

export interface Service extends KubeObject {
  spec?: {
    type?: string
    selector?: Record<string, string>
    clusterIP?: string
    ports?: { name?: string; port: number; targetPort?: number | string; protocol?: string; nodePort?: number }[]
    [field: string]: unknown
  }
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] }; [field: string]: unknown }
}

export interface ServiceAccount extends KubeObject {
  automountServiceAccountToken?: boolean
  imagePullSecrets?: { name?: string }[]
  secrets?: { name?: string }[]
}

/** A condition of a built-in kind; our own kinds add `observedGeneration`. */
export interface StatusCondition {
  type: string
  status: string
  reason?: string
  message?: string
  lastTransitionTime?: string
}

export interface Container {
  name: string
  image?: string
  [field: string]: unknown
}

export interface PodSpec {
  containers: Container[]
  initContainers?: Container[]
  serviceAccountName?: string
  nodeName?: string
  [field: string]: unknown
}

export interface PodTemplateSpec {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }
  spec?: PodSpec
}

export interface ContainerStatus {
  name: string
  ready?: boolean
  restartCount?: number
  state?: ContainerState
  lastState?: ContainerState
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string }
  running?: { startedAt?: string }
  terminated?: { exitCode: number; reason?: string; message?: string }
}

export interface Pod extends KubeObject {
  spec?: PodSpec
  status?: {
    phase?: string
    podIP?: string
    reason?: string
    message?: string
    conditions?: StatusCondition[]
    containerStatuses?: ContainerStatus[]
    initContainerStatuses?: ContainerStatus[]
    [field: string]: unknown
  }
}

/** `events.k8s.io/v1`. */
export interface KubeEvent extends KubeObject {
  eventTime?: string
  type?: string
  reason?: string
  action?: string
  note?: string
  regarding?: ObjectReference
  related?: ObjectReference
  reportingController?: string
  reportingInstance?: string
  series?: { count: number; lastObservedTime: string }
}

export interface ObjectReference {
  apiVersion?: string
  kind?: string
  namespace?: string
  name?: string
  uid?: string
  resourceVersion?: string
  fieldPath?: string
}

export interface WorkloadSpec {
  replicas?: number
  selector?: { matchLabels?: Record<string, string>; matchExpressions?: unknown[] }
  template?: PodTemplateSpec
  [field: string]: unknown
}

export interface WorkloadStatus {
  observedGeneration?: number
  replicas?: number
  readyReplicas?: number
  updatedReplicas?: number
  availableReplicas?: number
  conditions?: StatusCondition[]
  [field: string]: unknown
}

export interface Deployment extends KubeObject {
  spec?: WorkloadSpec
  status?: WorkloadStatus
}

export interface ReplicaSet extends KubeObject {
  spec?: WorkloadSpec
  status?: WorkloadStatus
}

export interface StatefulSet extends KubeObject {
  spec?: WorkloadSpec & { serviceName?: string }
  status?: WorkloadStatus & { currentRevision?: string; updateRevision?: string }
}

export interface PolicyRule {
  verbs: string[]
  apiGroups?: string[]
  resources?: string[]
  resourceNames?: string[]
  nonResourceURLs?: string[]
}

export interface Role extends KubeObject {
  rules?: PolicyRule[]
}

export interface ClusterRole extends Role {
  aggregationRule?: unknown
}

export interface RoleBinding extends KubeObject {
  roleRef: { apiGroup: string; kind: string; name: string }
  subjects?: { kind: string; name: string; namespace?: string; apiGroup?: string }[]
}

export type ClusterRoleBinding = RoleBinding

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
    [field: string]: unknown
  }
}

export interface NetworkPolicy extends KubeObject {
  spec?: { podSelector?: unknown; policyTypes?: string[]; ingress?: unknown[]; egress?: unknown[] }
}

export interface EndpointSlice extends KubeObject {
  addressType: string
  endpoints?: {
    addresses: string[]
    conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean }
    [field: string]: unknown
  }[]
  ports?: { name?: string; port?: number; protocol?: string }[]
}

export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string
    scope: string
    names: { kind: string; plural: string; singular?: string; listKind?: string; shortNames?: string[]; categories?: string[] }
    versions: { name: string; served: boolean; storage: boolean; [field: string]: unknown }[]
    [field: string]: unknown
  }
  status?: { conditions?: StatusCondition[]; [field: string]: unknown }
}

export interface KubeNode extends KubeObject {
  spec?: { unschedulable?: boolean; [field: string]: unknown }
  status?: { conditions?: StatusCondition[]; addresses?: { type: string; address: string }[]; [field: string]: unknown }
}
