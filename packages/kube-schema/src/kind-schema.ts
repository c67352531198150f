export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [name: string]: Json
}

/** Everything that the API server has to know about one served group, version and kind. Pure: no call changes its input. */
export interface KindSchema {
  /** Unknown fields taken out. `unknown` are Kubernetes field paths, for `fieldValidation` Warn and Strict. */
  prune(object: JsonObject): PruneResult
  applyDefaults(object: JsonObject): JsonObject
  /** All problems at once, in the order the real server reports them; `old` on updates (transition rules, immutability). */
  validate(object: JsonObject, old?: JsonObject): readonly FieldProblem[]
  /** Merge semantics for strategic merge and server-side apply. */
  readonly merge: MergeSchema
}

export interface PruneResult {
  readonly object: JsonObject
  readonly unknown: readonly string[]
}

export type FieldReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate'
  | 'FieldValueTooLong'
  | 'FieldValueTypeInvalid'
  | 'FieldValueTooMany'
  | 'FieldValueNotFound'
  | 'InternalError'

export interface FieldProblem {
  /** As in `status.details.causes[].field`; `<nil>` where the problem is of no field. */
  readonly field: string
  readonly reason: FieldReason
  /** As in `status.details.causes[].message`: `Invalid value: 3: must be …`. */
  readonly message: string
  /** As in the joined `status.message`: `spec.a: Invalid value: 3: must be …`. */
  readonly detail: string
}

/** One node of the merge rules. Methods, not maps: schemas of built-in kinds are recursive. */
export type MergeSchema = ScalarMerge | MapMerge | ListMerge | UntypedMerge

export interface ScalarMerge {
  readonly type: 'scalar'
  /** Type that apply accepts for it; any scalar where none is given, and anything at all for `whole`, a value that is one leaf. */
  readonly scalar?: 'string' | 'numeric' | 'boolean' | 'whole'
}

/** A struct or a map. `atomic`: one owner for the whole, replaced as a whole by apply (never by strategic merge). */
export interface MapMerge {
  readonly type: 'map'
  readonly atomic: boolean
  /** The rule of a member; undefined when the schema knows no such field. */
  member(name: string): MergeSchema | undefined
  /** A field of a struct; false for a key of a map. Both have a `member`, but ownership of the two is written differently. */
  isField(name: string): boolean
  readonly strategy: PatchStrategy
}

export interface ListMerge {
  readonly type: 'list'
  /** `x-kubernetes-list-type`, atomic where nothing is said. */
  readonly list: 'atomic' | 'set' | 'map'
  /** `x-kubernetes-list-map-keys`; empty unless `list` is `map`. */
  readonly keys: readonly string[]
  /** Defaults of key fields: an item without the key is identified by them. */
  readonly keyDefaults: JsonObject
  item(): MergeSchema
  readonly strategy: PatchStrategy
}

/** Any value (`x-kubernetes-preserve-unknown-fields`, int-or-string): maps merge, lists are atomic. */
export interface UntypedMerge {
  readonly type: 'untyped'
}

/** `x-kubernetes-patch-strategy` and `-merge-key`; only built-in kinds have them. */
export interface PatchStrategy {
  readonly merge: boolean
  readonly retainKeys: boolean
  /** Members that tell the items of a list apart. Built-in kinds have one; a missing value takes the list's key default. */
  readonly mergeKeys?: readonly string[]
}
