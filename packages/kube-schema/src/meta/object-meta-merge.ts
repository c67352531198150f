import type { MapMerge, MergeSchema, PatchStrategy, ScalarMerge } from '../kind-schema.ts'

const REPLACE: PatchStrategy = { merge: false, retainKeys: false }
const TIME: MergeSchema = { type: 'scalar' }
const TEXT: MergeSchema = scalarMerge({ type: 'string' })
const NUMBER: MergeSchema = scalarMerge({ type: 'integer' })
const FLAG: MergeSchema = scalarMerge({ type: 'boolean' })

const TEXT_MAP: MapMerge = { ...mapOf(() => TEXT), isField: () => false }

const OWNER_REFERENCES: MergeSchema = {
  type: 'list',
  list: 'map',
  keys: ['uid'],
  keyDefaults: { uid: '' },
  item: () => ({ ...mapOf((name) => OWNER_REFERENCE[name]), atomic: true }),
  strategy: { merge: true, retainKeys: false, mergeKeys: ['uid'] },
}

const OWNER_REFERENCE: Readonly<Record<string, MergeSchema>> = {
  apiVersion: TEXT,
  kind: TEXT,
  name: TEXT,
  uid: TEXT,
  controller: FLAG,
  blockOwnerDeletion: FLAG,
}

const FINALIZERS: MergeSchema = {
  type: 'list',
  list: 'set',
  keys: [],
  keyDefaults: {},
  item: () => TEXT,
  strategy: { merge: true, retainKeys: false },
}

const MEMBERS: Readonly<Record<string, MergeSchema>> = {
  name: TEXT,
  generateName: TEXT,
  namespace: TEXT,
  selfLink: TEXT,
  uid: TEXT,
  resourceVersion: TEXT,
  generation: NUMBER,
  creationTimestamp: TIME,
  deletionTimestamp: TIME,
  deletionGracePeriodSeconds: NUMBER,
  labels: TEXT_MAP,
  annotations: TEXT_MAP,
  ownerReferences: OWNER_REFERENCES,
  finalizers: FINALIZERS,
  managedFields: { type: 'list', list: 'atomic', keys: [], keyDefaults: {}, item: () => ({ type: 'untyped' }), strategy: REPLACE },
}

/** ObjectMeta, the same for every kind. */
export const OBJECT_META_MERGE: MapMerge = mapOf((name) => (Object.hasOwn(MEMBERS, name) ? MEMBERS[name] : undefined))

function mapOf(member: (name: string) => MergeSchema | undefined): MapMerge {
  return { type: 'map', atomic: false, member, isField: (name) => member(name) !== undefined, strategy: REPLACE }
}

/** A time may be anything to an apply: it is read later. */
export function scalarMerge({ type, format }: { readonly type?: string; readonly format?: string }): ScalarMerge {
  if (type === 'string')
    return format === 'date-time' || format === 'int-or-string' ? { type: 'scalar' } : { type: 'scalar', scalar: 'string' }
  if (type === 'boolean') return { type: 'scalar', scalar: 'boolean' }
  return type === 'integer' || type === 'number' ? { type: 'scalar', scalar: 'numeric' } : { type: 'scalar', scalar: 'whole' }
}
