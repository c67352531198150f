import type { KubeObject, OwnerReference } from '@thv/kube'

/** An object as owner references name it. `namespace` is empty for objects without one. */
export interface Identity {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface GraphNode {
  readonly identity: Identity
  readonly owners: readonly OwnerReference[]
  readonly dependents: Set<string>
  readonly finalizers: readonly string[]
  readonly resourceVersion: string
  readonly isBeingDeleted: boolean
  /** Known from references only: no watch has shown it, and it may not exist. */
  readonly isVirtual: boolean
}

export interface GraphListener {
  /** Something about the object may ask for its deletion, or for the end of it. */
  wake(uid: string): void
  /** It names an owner in another namespace, where owners cannot be. */
  wrongNamespace(node: GraphNode, owner: OwnerReference): void
}

export const FOREGROUND = 'foregroundDeletion'
export const ORPHAN = 'orphan'
const MAX_ABSENT = 1_000

/** Waits until those who hold it are gone. */
export function isDeletingDependents(node: GraphNode): boolean {
  return node.isBeingDeleted && node.finalizers.includes(FOREGROUND)
}

export function isOrphaning(node: GraphNode): boolean {
  return node.isBeingDeleted && node.finalizers.includes(ORPHAN)
}

/** Owners and dependents by uid, as far as watches have shown them. It decides nothing: it names the objects to look at. */
export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>()
  /** Owners that were seen to go, or were looked for and not found; the latest ones only. */
  readonly #absent = new Set<string>()
  readonly #listener: GraphListener

  constructor(listener: GraphListener) {
    this.#listener = listener
  }

  get size(): number {
    return this.#nodes.size
  }

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid)
  }

  dependentsOf(node: GraphNode): GraphNode[] {
    return [...node.dependents].flatMap((uid) => this.#nodes.get(uid) ?? [])
  }

  isAbsent(identity: Identity): boolean {
    return this.#absent.has(JSON.stringify(identity))
  }

  /** Of an owner that the server does not have. */
  noteAbsent(identity: Identity): void {
    const text = JSON.stringify(identity)
    this.#absent.delete(text)
    this.#absent.add(text)
    for (const oldest of this.#absent) {
      if (this.#absent.size <= MAX_ABSENT) return
      this.#absent.delete(oldest)
    }
  }

  observe(object: KubeObject): void {
    const { uid, ownerReferences = [], finalizers = [], deletionTimestamp, resourceVersion = '' } = object.metadata
    if (uid === undefined) return
    const before = this.#nodes.get(uid)
    const node: GraphNode = {
      identity: identityOf(object),
      owners: ownerReferences,
      dependents: before?.dependents ?? new Set(),
      finalizers,
      resourceVersion,
      isBeingDeleted: deletionTimestamp !== undefined,
      isVirtual: false,
    }
    this.#nodes.set(uid, node)
    if (before?.isVirtual) this.#compareDependents(node)
    this.#link(node, before)
    this.#wakeUnblocked(node, before)
    this.#noteTransition(node, before)
  }

  /** The object is gone for certain. */
  remove(object: KubeObject): void {
    const node = this.#nodes.get(object.metadata.uid ?? '')
    if (node !== undefined) this.#drop(node, identityOf(object))
  }

  /** The server was asked and has no object with this identity. Those who name their owner differently may still be right. */
  removeVirtual(identity: Identity): void {
    const node = this.#nodes.get(identity.uid)
    if (node === undefined) return
    const [matching, others] = this.#partition(node, identity)
    if (node.isVirtual && others.length === 0) {
      this.#drop(node, identity)
      return
    }
    if (matching.length > 0) this.noteAbsent(identity)
    for (const dependent of matching) this.#listener.wake(dependent.identity.uid)
    if (!node.isVirtual) return
    const next = others.flatMap((dependent) => referredIdentities(dependent, identity.uid)).find((other) => !this.isAbsent(other))
    if (next === undefined) return
    this.#nodes.set(identity.uid, { ...node, identity: next })
    this.#listener.wake(identity.uid)
  }

  #drop(node: GraphNode, identity: Identity): void {
    const { uid } = node.identity
    this.#nodes.delete(uid)
    for (const { uid: ownerUid } of node.owners) {
      const owner = this.#nodes.get(ownerUid)
      if (owner === undefined) continue
      owner.dependents.delete(uid)
      this.#forgetUnused(owner)
      if (isDeletingDependents(owner)) this.#listener.wake(ownerUid)
    }
    if (node.dependents.size > 0) this.noteAbsent(identity)
    for (const dependent of node.dependents) this.#listener.wake(dependent)
  }

  /** A virtual node lives only as long as somebody refers to it. */
  #forgetUnused(owner: GraphNode): void {
    if (owner.isVirtual && owner.dependents.size === 0) this.#nodes.delete(owner.identity.uid)
  }

  #link(node: GraphNode, before: GraphNode | undefined): void {
    const { uid } = node.identity
    const known = new Set(before?.owners.map((owner) => owner.uid))
    const named = new Set(node.owners.map((owner) => owner.uid))
    for (const removed of known) {
      if (named.has(removed)) continue
      const owner = this.#nodes.get(removed)
      owner?.dependents.delete(uid)
      if (owner !== undefined) this.#forgetUnused(owner)
    }
    let isDoubtful = false
    for (const reference of node.owners) {
      if (known.has(reference.uid)) continue
      const owner = this.#nodes.get(reference.uid)
      if (owner === undefined) this.#addVirtual(node, reference)
      else {
        owner.dependents.add(uid)
        isDoubtful = !this.#isPlausible(node, reference, owner) || isDoubtful
      }
    }
    if (isDoubtful) this.#listener.wake(uid)
  }

  #addVirtual(dependent: GraphNode, { apiVersion, kind, name, uid }: OwnerReference): void {
    this.#nodes.set(uid, {
      identity: { apiVersion, kind, namespace: dependent.identity.namespace, name, uid },
      owners: [],
      dependents: new Set([dependent.identity.uid]),
      finalizers: [],
      resourceVersion: '',
      isBeingDeleted: false,
      isVirtual: true,
    })
    this.#listener.wake(uid)
  }

  #isPlausible(node: GraphNode, reference: OwnerReference, owner: GraphNode): boolean {
    const { namespace } = owner.identity
    if (namespace !== '' && namespace !== node.identity.namespace) {
      if (!owner.isVirtual) this.#listener.wrongNamespace(node, reference)
      return false
    }
    if (!isNamed(reference, owner.identity)) return false
    return !owner.isVirtual || namespace === node.identity.namespace
  }

  /** Now that an owner was seen, those who named it wrongly must be looked at. */
  #compareDependents(owner: GraphNode): void {
    const { namespace, uid } = owner.identity
    const [, others] = this.#partition(owner, owner.identity)
    for (const dependent of others) {
      const isElsewhere = namespace !== '' && namespace !== dependent.identity.namespace
      for (const reference of isElsewhere ? dependent.owners.filter((one) => one.uid === uid) : [])
        this.#listener.wrongNamespace(dependent, reference)
      this.#listener.wake(dependent.identity.uid)
    }
  }

  /** Dependents that mean exactly this identity, and those that (also) mean another. */
  #partition(owner: GraphNode, identity: Identity): [matching: GraphNode[], others: GraphNode[]] {
    const matching: GraphNode[] = []
    const others: GraphNode[] = []
    for (const dependent of this.dependentsOf(owner)) {
      const isReachable = identity.namespace === '' || identity.namespace === dependent.identity.namespace
      const references = dependent.owners.filter(({ uid }) => uid === identity.uid)
      if (isReachable && references.some((reference) => isNamed(reference, identity))) matching.push(dependent)
      if (!isReachable || references.some((reference) => !isNamed(reference, identity))) others.push(dependent)
    }
    return [matching, others]
  }

  /** An owner that waits for its dependents may wait for one less. */
  #wakeUnblocked(node: GraphNode, before: GraphNode | undefined): void {
    for (const reference of before?.owners ?? []) {
      if (reference.blockOwnerDeletion !== true || blocks(node, reference.uid)) continue
      if (this.#nodes.has(reference.uid)) this.#listener.wake(reference.uid)
    }
  }

  #noteTransition(node: GraphNode, before: GraphNode | undefined): void {
    const { uid } = node.identity
    if (isOrphaning(node) && (before === undefined || !isOrphaning(before))) this.#listener.wake(uid)
    else if (isDeletingDependents(node) && (before === undefined || !isDeletingDependents(before))) {
      for (const dependent of node.dependents) this.#listener.wake(dependent)
      this.#listener.wake(uid)
    }
  }
}

/** Whether a foreground deletion of the owner waits for this one. */
export function blocks(node: GraphNode, ownerUid: string): boolean {
  return node.owners.some(({ uid, blockOwnerDeletion }) => uid === ownerUid && blockOwnerDeletion === true)
}

export function isNamed(reference: OwnerReference, { apiVersion, kind, name, uid }: Identity): boolean {
  return reference.uid === uid && reference.name === name && reference.kind === kind && reference.apiVersion === apiVersion
}

function identityOf({ apiVersion = '', kind = '', metadata }: KubeObject): Identity {
  const { namespace = '', name, uid = '' } = metadata
  return { apiVersion, kind, namespace, name, uid }
}

function referredIdentities({ identity, owners }: GraphNode, ownerUid: string): Identity[] {
  return owners
    .filter(({ uid }) => uid === ownerUid)
    .map(({ apiVersion, kind, name, uid }) => ({ apiVersion, kind, namespace: identity.namespace, name, uid }))
}
