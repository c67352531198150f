import { API_GROUP, type KindDefinition, SERVED_VERSIONS, STORAGE_VERSION } from './kind-definition.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** The CustomResourceDefinition of a kind, both versions with one schema, ready for `kubectl apply`. */
export function crdOf(definition: KindDefinition): JsonObject {
  const schema = openApiSchemaOf(definition)
  const schemaOf = (version: string) =>
    definition.describedOnce && version !== STORAGE_VERSION ? withoutDescriptions(schema, definition) : schema
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${definition.plural}.${API_GROUP}`,
      labels: { 'app.kubernetes.io/part-of': 'toolhive' },
    },
    spec: {
      group: API_GROUP,
      scope: 'Namespaced',
      names: {
        kind: definition.kind,
        listKind: `${definition.kind}List`,
        plural: definition.plural,
        singular: definition.singular,
        shortNames: [...definition.shortNames],
        categories: ['toolhive'],
      },
      conversion: { strategy: 'None' },
      versions: SERVED_VERSIONS.map((name) => ({
        name,
        served: true,
        storage: name === STORAGE_VERSION,
        schema: { openAPIV3Schema: schemaOf(name) },
        subresources: {
          status: {},
          ...(definition.scale && {
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
          }),
        },
        additionalPrinterColumns: definition.columns.map((column) => plain(column)),
      })),
    },
  }
}

/** The structural schema of a whole object of the kind. */
export function openApiSchemaOf(definition: KindDefinition): JsonObject {
  return {
    type: 'object',
    description: definition.description,
    ...(definition.specRequired && { required: ['spec'] }),
    properties: {
      apiVersion: { type: 'string', description: 'Group and version of the schema this object is written in.' },
      kind: { type: 'string', description: 'The kind of the object.' },
      metadata: { type: 'object' },
      spec: plain(definition.spec),
      status: plain(definition.status),
    },
    ...(definition.rules && { 'x-kubernetes-validations': plain(definition.rules) }),
  }
}

/** The same rules; the descriptions are those of the stored version, which `kubectl explain` shows. */
function withoutDescriptions(schema: JsonObject, { description, singular }: KindDefinition): JsonObject {
  const bare = undescribed(schema)
  const { spec, status } = bare['properties'] as { [name: string]: JsonObject }
  const where = `Described in ${STORAGE_VERSION}: kubectl explain ${singular}.`
  Object.assign(spec ?? {}, { description: `${where}spec` })
  Object.assign(status ?? {}, { description: `${where}status` })
  return { ...bare, description }
}

function undescribed(node: JsonObject): JsonObject {
  const { description: _, ...bare } = node
  for (const key of ['items', 'additionalProperties']) if (isNode(bare[key])) bare[key] = undescribed(bare[key])
  if (isNode(bare['properties'])) {
    const properties = Object.entries(bare['properties'])
    bare['properties'] = Object.fromEntries(properties.map(([name, member]) => [name, isNode(member) ? undescribed(member) : member]))
  }
  return bare
}

function isNode(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Drops our own marks (keys with `~`); everything else of a schema is plain JSON already. */
function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value, (key, member) => (key.startsWith('~') ? undefined : member)))
}
