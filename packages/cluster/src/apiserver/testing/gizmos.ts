import type { JsonObject } from '@thv/kube-schema/kind-schema'

/** A definition of cluster-wide objects with two fields, `a` and `b`. */
export function gizmos(a: JsonObject, b: JsonObject = { type: 'string' }): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gizmos.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names: { kind: 'Gizmo', plural: 'gizmos' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties: { a, b } } } }],
    },
  }
}
