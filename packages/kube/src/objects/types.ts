/** Members of every Kubernetes object, as far as this package reads them. Times are RFC 3339 strings, as on the wire. */
export interface ObjectMeta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  generateName?: string
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: OwnerReference[]
  managedFields?: unknown[]
}

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
}

export interface KubeList<T extends KubeObject = KubeObject> {
  apiVersion?: string
  kind?: string
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number }
  items: T[]
}

/** Names one kind of object on the server. `T` is the type its objects have; it exists only at compile time. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  /** Never set at run time: ties the TypeScript type to the resource. */
  readonly objectType?: T
}

export interface ObjectKey {
  namespace?: string
  name: string
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

export interface WatchEvent<T extends KubeObject = KubeObject> {
  type: WatchEventType
  /** For `ERROR` the object is a Status. */
  object: T
}

/** The `Status` object with which the server answers errors and some deletes. */
export interface KubeStatus {
  kind?: 'Status'
  apiVersion?: string
  status?: 'Success' | 'Failure'
  message?: string
  reason?: string
  code?: number
  details?: {
    name?: string
    group?: string
    kind?: string
    uid?: string
    retryAfterSeconds?: number
    causes?: { reason?: string; message?: string; field?: string }[]
  }
}
