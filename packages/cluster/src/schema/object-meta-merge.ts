import type { MapMerge, MergeSchema, PatchStrategy } from '../apiserver/kind-schema.ts'

const REPLACE: PatchStrategy = { merge: false, retainKeys: false }
const SCALAR: MergeSchema = { type: 'scalar' }

const TEXT_MAP: MapMerge = { ...mapOf(() => SCALAR), isField: () => false }

const OWNER_REFERENCES: MergeSchema = {
  type: 'list',
  list: 'map',
  keys: ['uid'],
  keyDefaults: {},
  item: () => ({ ...mapOf((name) => OWNER_REFERENCE[name]), atomic: true }),
  strategy: { merge: true, retainKeys: false, mergeKey: 'uid' },
}

const OWNER_REFERENCE: Readonly<Record<string, MergeSchema>> = {
  apiVersion: SCALAR,
  kind: SCALAR,
  name: SCALAR,
  uid: SCALAR,
  controller: SCALAR,
  blockOwnerDeletion: SCALAR,
}

const FINALIZERS: MergeSchema = {
  type: 'list',
  list: 'set',
  keys: [],
  keyDefaults: {},
  item: () => SCALAR,
  strategy: { merge: true, retainKeys: false },
}

const MEMBERS: Readonly<Record<string, MergeSchema>> = {
  name: SCALAR,
  generateName: SCALAR,
  namespace: SCALAR,
  selfLink: SCALAR,
  uid: SCALAR,
  resourceVersion: SCALAR,
  generation: SCALAR,
  creationTimestamp: SCALAR,
  deletionTimestamp: SCALAR,
  deletionGracePeriodSeconds: SCALAR,
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
