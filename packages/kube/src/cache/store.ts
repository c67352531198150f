import { type LabelMatcher, type LabelSelector, parseLabelSelector } from '../objects/label-selector.ts'
import type { KubeObject, ObjectKey } from '../objects/types.ts'

export interface StoreFilter {
  namespace?: string | undefined
  /** Parsed once per call; give a `LabelMatcher` to parse it once and for all. */
  labelSelector?: string | LabelSelector | LabelMatcher | undefined
}

/** Read access to a cache. All readers share the objects: never change one, copy it. */
export interface ReadonlyStore<T extends KubeObject = KubeObject> {
  readonly size: number
  get(key: ObjectKey): T | undefined
  list(filter?: StoreFilter): T[]
  /** Objects for which the index gave this value. Throws a RangeError for an index that was never added. */
  byIndex(name: string, value: string): T[]
  /**
   * `valuesOf` must be pure: it is asked again about the same object to remove it. May be added at any time; what is there is
   * indexed at once. A name can be taken only once.
   */
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void
}

export interface ObjectStoreOptions<T extends KubeObject> {
  /** Applied to each object on its way in, to save memory. Must keep name, namespace, uid and resourceVersion. */
  transform?: ((object: T) => T) | undefined
  /** Told when an index function throws; the object is then absent from that index. Without it the error is thrown before any change. */
  onError?: ((error: unknown) => void) | undefined
}

interface Index<T> {
  readonly valuesOf: (object: T) => readonly string[]
  readonly buckets: Map<string, Set<T>>
}

/** Objects by namespace and name, with named indexes. Reads cost what they return. */
export class ObjectStore<T extends KubeObject = KubeObject> implements ReadonlyStore<T> {
  readonly #namespaces = new Map<string, Map<string, T>>()
  readonly #indexes = new Map<string, Index<T>>()
  readonly #options: ObjectStoreOptions<T>
  #size = 0

  constructor(options: ObjectStoreOptions<T> = {}) {
    this.#options = options
  }

  get size(): number {
    return this.#size
  }

  get(key: ObjectKey): T | undefined {
    return this.#namespaces.get(key.namespace ?? '')?.get(key.name)
  }

  list(filter: StoreFilter = {}): T[] {
    const objects = filter.namespace === undefined ? [...this.values()] : [...(this.#namespaces.get(filter.namespace)?.values() ?? [])]
    if (filter.labelSelector === undefined) return objects
    const matcher = asMatcher(filter.labelSelector)
    return objects.filter((object) => matcher.matches(object.metadata.labels))
  }

  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name)
    if (index === undefined)
      throw new RangeError(`there is no index "${name}" here; there are: ${[...this.#indexes.keys()].join(', ') || 'none'}`)
    return [...(index.buckets.get(value) ?? [])]
  }

  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void {
    if (this.#indexes.has(name)) throw new RangeError(`index "${name}" exists already`)
    const index: Index<T> = { valuesOf, buckets: new Map() }
    for (const object of this.values()) insert(index, this.#valuesIn(index, object), object)
    this.#indexes.set(name, index)
  }

  *values(): Generator<T, void, undefined> {
    for (const objects of this.#namespaces.values()) yield* objects.values()
  }

  /** The part of the object that `set` would keep. */
  transform(object: T): T {
    return this.#options.transform?.(object) ?? object
  }

  /** Keeps an object that has been through `transform`; returns the one it replaces. */
  set(object: T): T | undefined {
    const { namespace = '', name } = object.metadata
    const places = [...this.#indexes.values()].map((index) => ({ index, values: this.#valuesIn(index, object) }))
    let objects = this.#namespaces.get(namespace)
    if (objects === undefined) {
      objects = new Map()
      this.#namespaces.set(namespace, objects)
    }
    const old = objects.get(name)
    objects.set(name, object)
    if (old === undefined) this.#size++
    for (const { index, values } of places) {
      if (old !== undefined) remove(index, old)
      insert(index, values, object)
    }
    return old
  }

  delete(key: ObjectKey): T | undefined {
    const namespace = key.namespace ?? ''
    const objects = this.#namespaces.get(namespace)
    const old = objects?.get(key.name)
    if (objects === undefined || old === undefined) return undefined
    for (const index of this.#indexes.values()) remove(index, old)
    objects.delete(key.name)
    if (objects.size === 0) this.#namespaces.delete(namespace)
    this.#size--
    return old
  }

  #valuesIn(index: Index<T>, object: T): readonly string[] {
    try {
      return index.valuesOf(object)
    } catch (error) {
      if (this.#options.onError === undefined) throw error
      this.#options.onError(error)
      return []
    }
  }
}

function insert<T>(index: Index<T>, values: readonly string[], object: T): void {
  for (const value of values) {
    const bucket = index.buckets.get(value)
    if (bucket === undefined) index.buckets.set(value, new Set([object]))
    else bucket.add(object)
  }
}

function remove<T>(index: Index<T>, object: T): void {
  let values: readonly string[]
  try {
    values = index.valuesOf(object)
  } catch {
    return // it threw when the object came in, was reported then, and put nothing into the index
  }
  for (const value of values) {
    const bucket = index.buckets.get(value)
    bucket?.delete(object)
    if (bucket?.size === 0) index.buckets.delete(value)
  }
}

function asMatcher(selector: string | LabelSelector | LabelMatcher): LabelMatcher {
  return typeof selector === 'object' && 'matches' in selector ? selector : parseLabelSelector(selector)
}

/** Drops `managedFields`, often the larger half of an object. */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields, ...metadata } = object.metadata
  return managedFields === undefined ? object : { ...object, metadata }
}

/** Identity, labels, annotations and owners only: for Secrets and ConfigMaps whose content is not needed in memory. */
export function metadataOnly(object: KubeObject): KubeObject {
  const { managedFields: _, annotations, ...rest } = object.metadata
  const metadata: KubeObject['metadata'] = rest
  if (annotations !== undefined) {
    const { [LAST_APPLIED]: __, ...kept } = annotations
    metadata.annotations = kept
  }
  const kept: KubeObject = { metadata }
  if (object.apiVersion !== undefined) kept.apiVersion = object.apiVersion
  if (object.kind !== undefined) kept.kind = object.kind
  return kept
}

/** kubectl keeps the whole object in it, content of Secrets included. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
