import type { FieldProblem, Json, JsonObject, KindSchema } from '@thv/kube-schema/kind-schema'
import type { NameRule } from '@thv/kube-schema/values/object-name'
import type { ObjectStore } from '../../store/object-store.ts'
import type { KindName } from './status-error.ts'

/** One group, version and kind that is served. */
export interface ServedKind extends KindName {
  readonly version: string
  readonly listKind: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  /** Its name in the store: the same for all versions of a kind. */
  readonly type: string
  readonly schema: KindSchema
  /** The schema as clients may read it. */
  readonly openApi: JsonObject
  readonly columns: readonly Column[]
  readonly status: boolean
  readonly scale?: ScalePaths
  readonly rules: KindRules
  /** Items of lists carry apiVersion and kind, patches are never strategic. */
  readonly custom: boolean
  /** How objects of a definition are read that were stored before its last change, at revision `since`. */
  readonly stored?: { readonly since: number; readonly version: string; readonly schema: KindSchema }
  /** For a kind that is stored in the form of another; absent when both are the same. */
  readonly conversion?: { toStored(body: JsonObject): JsonObject; fromStored(body: JsonObject): JsonObject }
}

/** Rules of a kind beyond its schema. All pure but `allocate`, which may look at what is stored. */
export interface KindRules {
  readonly name: NameRule
  /** Members (`spec`, `metadata.annotations`) whose change is a new generation; none when the kind has no generations. `*`: all but metadata and status. */
  readonly generation: readonly string[]
  /** A PUT may leave the resource version out. */
  readonly unconditionalUpdate: boolean
  /** A deletion that does not say what becomes of the dependents leaves them. */
  readonly orphansDependents?: boolean
  /** A deletion that was done at once answers with the object instead of a Status. */
  readonly returnsDeleted: boolean
  /** Defaults that the schema cannot express: filled in when an object comes in, as if the client had sent it. In stored form. */
  applyDefaults?(object: JsonObject): JsonObject
  /** A PUT of what is not there creates it. */
  readonly createOnUpdate?: boolean
  /**
   * What an object gets by what is stored: addresses that are given out once, the account of a pod. Before it is prepared and validated.
   * Refuses with a StatusError.
   */
  allocate?(object: JsonObject, from: Allocation): JsonObject
  /** Fields that the server adds to a new object, or removes from it. */
  prepareCreate?(object: JsonObject): JsonObject
  prepareUpdate?(object: JsonObject, old: JsonObject): JsonObject
  /** The same for a write of the status only. */
  prepareStatus?(object: JsonObject, old: JsonObject): JsonObject
  validate?(object: JsonObject, old?: JsonObject): readonly FieldProblem[]
  /** Refuses a new object that is valid, but not wanted in its namespace, with a StatusError. */
  permit?(object: JsonObject, from: Allocation): void
  /** In place of `validate` when only the status is written. */
  validateStatus?(object: JsonObject, old: JsonObject): readonly FieldProblem[]
  /** Seconds until the object may go; 0 is at once. Asked for what is deleted gracefully only. */
  gracePeriod?(object: JsonObject, asked: number | undefined): number
  /** The object when its deletion begins and cannot be completed yet. */
  beginDeletion?(object: JsonObject): JsonObject
  /** Something besides metadata.finalizers still holds a deleted object. */
  held?(object: JsonObject): boolean
  /** Values of fields for field selectors, besides metadata.name and metadata.namespace. */
  readonly selectable?: Readonly<Record<string, (object: JsonObject) => string>>
}

/** Metadata of built-in kinds that a write of the status leaves alone. */
export const keptByStatus: Readonly<Record<string, readonly string[]>> = { pods: ['ownerReferences'], 'deployments.apps': ['labels'] }

export interface Allocation {
  readonly store: ObjectStore
  /** A CIDR. */
  readonly serviceRange: string
  /** The object before the write. */
  readonly old?: JsonObject
}

export interface ScalePaths {
  readonly spec: readonly string[]
  readonly status: readonly string[]
  /** Of the text form of a selector; absent for built-in kinds, whose selector is an object at spec.selector. */
  readonly selector?: readonly string[]
}

/** A column of a Table. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
  cell(object: JsonObject, now: number): Json
}

export function apiVersionOf({ group, version }: { group: string; version: string }): string {
  return group === '' ? version : `${group}/${version}`
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value at a path of members, or undefined. */
export function at(object: Json | undefined, ...path: readonly string[]): Json | undefined {
  let value = object
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

export function textAt(object: Json | undefined, ...path: readonly string[]): string {
  const value = at(object, ...path)
  return typeof value === 'string' ? value : ''
}

export function metaOf(object: JsonObject): JsonObject {
  const metadata = object['metadata']
  return isObject(metadata) ? metadata : {}
}

/** A copy with the value at the path; objects that are missing on the way are made. */
export function withAt(object: JsonObject, path: readonly string[], value: Json): JsonObject {
  const [name, ...rest] = path
  if (name === undefined) return object
  const below = object[name]
  return { ...object, [name]: rest.length === 0 ? value : withAt(isObject(below) ? below : {}, rest, value) }
}

export function without(object: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

export const CRD_TYPE = 'customresourcedefinitions.apiextensions.k8s.io'
