import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { ServedKind } from '../objects/served-kind.ts'
import type { KindRegistry } from './kind-registry.ts'
import { patchTypes } from './openapi.ts'
import { openApiSchemas } from './openapi-schemas.ts'

/**
 * /openapi/v2: everything in one document, made when somebody asks. Newer clients read version 3. Only JSON: gnostic's protobuf form is
 * not served.
 */
export function swaggerDocument(registry: KindRegistry): object {
  const definitions: Record<string, JsonObject> = {}
  const paths: Record<string, object> = {}
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

function operation(kind: ServedKind, action: Action, root: string): object {
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

function parameter(name: string, place: 'path' | 'query'): object {
  const type = name === 'force' ? 'boolean' : 'string'
  return { name, in: place, type, uniqueItems: true, ...(place === 'path' ? { required: true } : {}) }
}
