import { type BuiltinNode, builtinSchemas } from '@thv/kube-schema/builtin/builtin-schema'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { apiVersionOf, isObject, type ServedKind } from '../objects/served-kind.ts'

/** The schema of a kind, and of everything it refers to, by the names under which an OpenAPI document has them. */
export interface NamedSchemas {
  readonly root: string
  readonly schemas: Readonly<Record<string, JsonObject>>
}

export function openApiSchemas(kind: ServedKind): NamedSchemas {
  const gvk = { group: kind.group, version: kind.version, kind: kind.kind }
  const builtin = kind.custom ? undefined : builtinSchemas().kinds[`${apiVersionOf(kind)} ${kind.kind}`]
  const root = builtin ?? schemaName(kind)
  const schemas = builtin === undefined ? { [root]: { type: 'object', ...kind.openApi } } : closure(builtin)
  return { root, schemas: { ...schemas, [root]: { ...schemas[root], 'x-kubernetes-group-version-kind': [gvk] } } }
}

/** `com.example.v1.Widget` for example.com/v1 Widget, as the real server names them. */
function schemaName({ group, version, kind }: ServedKind): string {
  return [...group.split('.').reverse(), version, kind].join('.')
}

function closure(root: string): Record<string, JsonObject> {
  const { schemas } = builtinSchemas()
  const found = new Map<string, JsonObject>()
  const open = [root]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const node: BuiltinNode | undefined = schemas[id]
    if (node === undefined || found.has(id)) continue
    found.set(id, withReferences(node as unknown as JsonObject, (target) => open.push(target)) as JsonObject)
  }
  return Object.fromEntries(found)
}

/** The generated file refers by the bare name; a document wants a path. */
function withReferences(value: Json, seen: (target: string) => void): Json {
  if (Array.isArray(value)) return value.map((item: Json) => withReferences(item, seen))
  if (!isObject(value)) return value
  const target = value['$ref']
  if (typeof target === 'string') {
    seen(target)
    return { allOf: [{ $ref: `#/components/schemas/${target}` }], ...without$ref(value, seen) }
  }
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withReferences(member, seen)]))
}

function without$ref(value: JsonObject, seen: (target: string) => void): JsonObject {
  const rest = Object.entries(value).filter(([name]) => name !== '$ref')
  return Object.fromEntries(rest.map(([name, member]) => [name, withReferences(member, seen)]))
}
