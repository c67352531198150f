import type { KubeObject, ObjectKey, OwnerReference, ResourceType } from './types.ts'

export interface OwnerRefOptions {
  /** Whether a foreground deletion of the owner waits for the object. Needs the right to update the owner's finalizers. Default true. */
  blockOwnerDeletion?: boolean
}

/** The reference that makes `owner` the one controller of an object. `owner` must come from the server: it needs its uid. */
export function controllerRef(owner: KubeObject, type: ResourceType, options: OwnerRefOptions = {}): OwnerReference {
  const { name, uid } = owner.metadata
  if (!uid) throw new RangeError(`${type.kind} ${name} cannot own anything: it has no uid`)
  return {
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: type.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: options.blockOwnerDeletion ?? true,
  }
}

/**
 * A copy of `object` controlled by `owner`. Throws a RangeError when another controller owns it already (look at `controllerOf` first
 * when that may happen), or when the owner lies where the garbage collector would not look for it.
 */
export function setControllerReference<T extends KubeObject>(
  object: T,
  owner: { object: KubeObject; type: ResourceType } & OwnerRefOptions,
): T {
  const ref = controllerRef(owner.object, owner.type, owner)
  checkReach(object, owner.object, owner.type)
  const current = controllerOf(object)
  if (current && current.uid !== ref.uid) {
    const { kind, name } = current
    throw new RangeError(`${describe(object)} is controlled by ${kind} ${name}, not by ${ref.kind} ${ref.name}`)
  }
  const refs = object.metadata.ownerReferences ?? []
  const at = refs.findIndex((candidate) => candidate.uid === ref.uid)
  const ownerReferences = at < 0 ? [...refs, ref] : refs.with(at, ref)
  return { ...object, metadata: { ...object.metadata, ownerReferences } }
}

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((ref) => ref.controller === true)
}

/** By uid: an owner that was deleted and made again under its name is another one. */
export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  const uid = owner.metadata.uid
  return uid !== undefined && controllerOf(object)?.uid === uid
}

export interface OwnerFilter {
  group: string
  kind: string
  /** Default true: the owner is looked for in the object's namespace. */
  namespaced?: boolean
  /** Also owners that do not control the object. */
  anyOwner?: boolean
}

/** Keys of the owners of one kind, in whatever version they were written down. */
export function ownerKeys(object: KubeObject, filter: OwnerFilter): ObjectKey[] {
  const namespace = filter.namespaced === false ? undefined : object.metadata.namespace
  return (object.metadata.ownerReferences ?? [])
    .filter((ref) => (filter.anyOwner || ref.controller === true) && ref.kind === filter.kind && groupOf(ref.apiVersion) === filter.group)
    .map(({ name }) => (namespace ? { namespace, name } : { name }))
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}

/** A namespaced owner owns only in its namespace; a wrong reference would get the object deleted. */
function checkReach(object: KubeObject, owner: KubeObject, type: ResourceType): void {
  if (!type.namespaced || owner.metadata.namespace === object.metadata.namespace) return
  const where = object.metadata.namespace ? `namespace ${object.metadata.namespace}` : 'no namespace'
  throw new RangeError(`${type.kind} ${owner.metadata.namespace}/${owner.metadata.name} cannot own ${describe(object)} in ${where}`)
}

function describe(object: KubeObject): string {
  return `${object.kind ?? 'object'} ${object.metadata.name}`
}
