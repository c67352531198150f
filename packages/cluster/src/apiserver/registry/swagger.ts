import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { ServedKind } from '../objects/served-kind.ts'
import type { KindRegistry } from './kind-registry.ts'
import { patchTypes } from './openapi.ts'
import { openApiSchemas } from './openapi-schemas.ts'

const PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
/** By the types and ranges that clients accept; kubectl asks by the second name. */
const TYPES: ReadonlyMap<string, string> = new Map([
  ['application/json', 'application/json'],
  ['application/com.github.proto-openapi.spec.v2@v1.0+protobuf', PROTOBUF],
  [PROTOBUF, PROTOBUF],
  ['application/*', 'application/json'],
  ['*/*', 'application/json'],
])

/** The media type of the answer; undefined for a client that takes none of them. */
export function swaggerType(accept: string): string | undefined {
  const ranges = (accept || '*/*').split(',').map((range) => range.split(';').map((part) => part.trim()))
  const quality = (parameters: readonly string[]) => Number(parameters.find((each) => each.startsWith('q='))?.slice(2) ?? 1)
  return ranges
    .toSorted(([, ...a], [, ...b]) => quality(b) - quality(a))
    .map(([type = '']) => TYPES.get(type.toLowerCase()))
    .find((type) => type !== undefined)
}

/**
 * /openapi/v2: everything in one document, made when somebody asks. Newer clients read version 3, and this one for a kind that is in none
 * of its documents.
 */
export function swaggerDocument(registry: KindRegistry): JsonObject {
  const definitions: Record<string, JsonObject> = {}
  const paths: Record<string, JsonObject> = {}
  for (const kind of registry.all()) {
    const { root, schemas } = openApiSchemas(kind, 2)
    Object.assign(definitions, schemas)
    const group = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
    const collection = `${group}/${kind.namespaced ? 'namespaces/{namespace}/' : ''}${kind.plural}`
    const places = kind.namespaced ? [parameter('namespace', 'path')] : []
    paths[collection] = { parameters: places, get: operation(kind, 'list', root), post: operation(kind, 'post', root) }
    paths[`${collection}/{name}`] = {
      parameters: [...places, parameter('name', 'path')],
      ...Object.fromEntries((['get', 'put', 'patch', 'delete'] as const).map((action) => [action, operation(kind, action, root)])),
    }
  }
  return { swagger: '2.0', info: { title: 'Kubernetes', version: 'v1.34.1+thv' }, paths, definitions }
}

type Action = 'list' | 'post' | 'get' | 'put' | 'patch' | 'delete'

function operation(kind: ServedKind, action: Action, root: string): JsonObject {
  const writes = action === 'post' || action === 'put' || action === 'patch'
  const options = writes ? ['dryRun', 'fieldManager', 'fieldValidation', ...(action === 'patch' ? ['force'] : [])] : []
  const schema = { $ref: `#/definitions/${root}` }
  const body = { name: 'body', in: 'body', required: true, schema: action === 'patch' ? { type: 'object' } : schema }
  return {
    operationId: `${action}${kind.group.replaceAll(/\W/g, '')}${kind.version}${kind.kind}`,
    consumes: action === 'patch' ? patchTypes(kind) : ['*/*'],
    produces: ['application/json'],
    parameters: [...(writes ? [body] : []), ...options.map((name) => parameter(name, 'query'))],
    responses: { '200': { description: 'OK', ...(action === 'list' || action === 'delete' ? {} : { schema }) } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: kind.group, version: kind.version, kind: kind.kind },
  }
}

function parameter(name: string, place: 'path' | 'query'): JsonObject {
  const type = name === 'force' ? 'boolean' : 'string'
  return { name, in: place, type, uniqueItems: true, ...(place === 'path' ? { required: true } : {}) }
}
