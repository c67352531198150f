import { type BuiltinNode, builtinSchemas } from '@thv/kube-schema/builtin/builtin-schema'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { apiVersionOf, isObject, type ServedKind } from '../objects/served-kind.ts'
import { describedMetadata, typeMetaProperties } from './metadata-descriptions.ts'
import { swaggerNode } from './swagger-node.ts'

/** The schema of a kind, and of everything it refers to, by the names under which an OpenAPI document has them. */
export interface NamedSchemas {
  readonly root: string
  readonly schemas: Readonly<Record<string, JsonObject>>
}

/** Of OpenAPI: 2 is Swagger, where a reference may have members beside it and schemas know less. */
export type OpenApiVersion = 2 | 3

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
const PREFIXES: Readonly<Record<OpenApiVersion, string>> = { 2: '#/definitions/', 3: '#/components/schemas/' }

export function openApiSchemas(kind: ServedKind, version: OpenApiVersion = 3): NamedSchemas {
  const gvk = { group: kind.group, version: kind.version, kind: kind.kind }
  const builtin = kind.custom ? undefined : builtinSchemas().kinds[`${apiVersionOf(kind)} ${kind.kind}`]
  const root = builtin ?? schemaName(kind)
  const schemas =
    builtin === undefined ? { ...closure(OBJECT_META, version), [root]: customSchema(kind, version) } : closure(builtin, version)
  return { root, schemas: { ...schemas, [root]: { ...schemas[root], 'x-kubernetes-group-version-kind': [gvk] } } }
}

/** With the members that every object has. Swagger cannot say that more than its properties are allowed, so there it says nothing. */
function customSchema({ openApi }: ServedKind, version: OpenApiVersion): JsonObject {
  if (version === 2 && openApi['x-kubernetes-preserve-unknown-fields'] === true) return { type: 'object' }
  const own = version === 2 ? swaggerNode(openApi) : openApi
  const metadata = reference(OBJECT_META, { description: "Standard object's metadata." }, version)
  return { type: 'object', ...own, properties: { ...(own['properties'] as JsonObject | undefined), ...typeMetaProperties, metadata } }
}

/** `com.example.v1.Widget` for example.com/v1 Widget, as the real server names them. */
function schemaName({ group, version, kind }: ServedKind): string {
  return [...group.split('.').reverse(), version, kind].join('.')
}

function closure(root: string, version: OpenApiVersion): Record<string, JsonObject> {
  const { schemas } = builtinSchemas()
  const found = new Map<string, JsonObject>()
  const open = [root]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const node: BuiltinNode | undefined = schemas[id]
    if (node === undefined || found.has(id)) continue
    const own = withReferences(node as unknown as JsonObject, { version, seen: (target) => open.push(target) }) as JsonObject
    found.set(id, id === OBJECT_META ? describedMetadata(own) : own)
  }
  return Object.fromEntries(found)
}

interface Walk {
  readonly version: OpenApiVersion
  seen(target: string): void
}

/** The generated file refers by the bare name; a document wants a path. */
function withReferences(value: Json, walk: Walk): Json {
  if (Array.isArray(value)) return value.map((item: Json) => withReferences(item, walk))
  if (!isObject(value)) return value
  const { $ref: target, ...rest } = value
  const members = Object.fromEntries(Object.entries(rest).map(([name, member]) => [name, withReferences(member, walk)]))
  if (typeof target !== 'string') return members
  walk.seen(target)
  return reference(target, members, walk.version)
}

function reference(target: string, beside: JsonObject, version: OpenApiVersion): JsonObject {
  const $ref = `${PREFIXES[version]}${target}`
  return version === 2 ? { $ref, ...beside } : { allOf: [{ $ref }], ...beside }
}
