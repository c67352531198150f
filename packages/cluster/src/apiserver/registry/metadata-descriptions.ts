import type { JsonObject } from '@thv/kube-schema/kind-schema'

/** For `kubectl explain`. */
export const typeMetaProperties: JsonObject = {
  apiVersion: { type: 'string', description: 'APIVersion defines the group and the version of the schema of this object.' },
  kind: { type: 'string', description: 'Kind is the name of the type of this object, in CamelCase. It cannot be changed.' },
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  annotations: 'Annotations are values by name, for programs to keep what they need. They cannot be selected by.',
  creationTimestamp: "CreationTimestamp is a timestamp of the server's clock when the object was created. Set by the server.",
  deletionGracePeriodSeconds:
    'DeletionGracePeriodSeconds is how long the object may take to end. Set by the server with deletionTimestamp.',
  deletionTimestamp: 'DeletionTimestamp is when the object will be gone, unless finalizers hold it. Set by the server.',
  finalizers: 'Finalizers hold a deleted object until each has been removed by whoever is responsible for it.',
  generateName: 'GenerateName is a prefix from which the server makes a unique name when no name is given.',
  generation: 'Generation counts the changes of the desired state. Set by the server.',
  labels: 'Labels are values by name, by which objects are organized and selected.',
  managedFields: 'ManagedFields tell which manager set which fields. Kept by the server.',
  name: 'Name is unique within a namespace, and cannot be changed.',
  namespace: 'Namespace is the space within which the name is unique. It cannot be changed.',
  ownerReferences: 'OwnerReferences are the objects that this one depends on; it is deleted when all of them are gone.',
  resourceVersion: 'ResourceVersion is the internal version of the object, for watches and concurrent writes. Set by the server.',
  selfLink: 'SelfLink is no longer set.',
  uid: 'UID is unique in time and space. Set by the server.',
}

/** The schema of the metadata, with a description of each field. */
export function describedMetadata(schema: JsonObject): JsonObject {
  const properties = schema['properties'] as Readonly<Record<string, JsonObject>>
  const described = Object.entries(properties).map(([name, node]) => [name, { ...node, description: DESCRIPTIONS[name] ?? '' }])
  return { ...schema, description: 'ObjectMeta is the metadata of every stored object.', properties: Object.fromEntries(described) }
}
