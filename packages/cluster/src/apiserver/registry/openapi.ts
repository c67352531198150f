import { createHash } from 'node:crypto'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { ServedKind } from '../objects/served-kind.ts'
import { groupsOf } from './discovery.ts'
import type { KindRegistry } from './kind-registry.ts'
import { openApiSchemas } from './openapi-schemas.ts'

/** /openapi/v3: where each group version's document is. The hash changes with its content, so clients may keep it without limit. */
export function openApiIndex(registry: KindRegistry): object {
  const paths = documentNames(registry).map(({ name, kinds }) => {
    const hash = createHash('sha256')
      .update(JSON.stringify(documentOf(name, kinds)))
      .digest('hex')
      .toUpperCase()
    return [name, { serverRelativeURL: `/openapi/v3/${name}?hash=${hash}` }]
  })
  return { paths: Object.fromEntries(paths) }
}

/** The document of `api/v1` or `apis/GROUP/VERSION`; undefined when there is none. */
export function openApiDocument(registry: KindRegistry, name: string): object | undefined {
  const found = documentNames(registry).find((document) => document.name === name)
  return found ? documentOf(found.name, found.kinds) : undefined
}

function documentNames(registry: KindRegistry): { name: string; kinds: readonly ServedKind[] }[] {
  return groupsOf(registry).flatMap(([group, versions]) =>
    [...versions].map(([version, kinds]) => ({ name: group === '' ? `api/${version}` : `apis/${group}/${version}`, kinds })),
  )
}

function documentOf(name: string, kinds: readonly ServedKind[]): object {
  const schemas: Record<string, JsonObject> = {}
  const paths: Record<string, object> = {}
  for (const kind of kinds) {
    const { root, schemas: own } = openApiSchemas(kind)
    for (const [key, schema] of Object.entries(own)) schemas[key] = schema
    const collection = `/${name}/${kind.namespaced ? 'namespaces/{namespace}/' : ''}${kind.plural}`
    paths[collection] = { get: operation(kind, 'list', root), post: operation(kind, 'post', root) }
    paths[`${collection}/{name}`] = {
      get: operation(kind, 'get', root),
      put: operation(kind, 'put', root),
      patch: operation(kind, 'patch', root),
      delete: operation(kind, 'delete', root),
    }
  }
  return { openapi: '3.0.0', info: { title: 'Kubernetes', version: 'v1.34.1+thv' }, paths, components: { schemas } }
}

/** As much of an operation as kubectl looks at: without its parameters apply fails, without its media types explain does. */
function operation(kind: ServedKind, action: 'list' | 'post' | 'get' | 'put' | 'patch' | 'delete', root: string): object {
  const schema = { $ref: `#/components/schemas/${root}` }
  const writes = action === 'post' || action === 'put' || action === 'patch'
  const names = writes ? ['dryRun', 'fieldManager', 'fieldValidation', ...(action === 'patch' ? ['force'] : [])] : []
  const types = action === 'patch' ? patchTypes(kind) : ['application/json']
  const content = Object.fromEntries(types.map((type) => [type, { schema: action === 'patch' ? { type: 'object' } : schema }]))
  return {
    parameters: names.map((name) => ({ name, in: 'query', schema: { type: name === 'force' ? 'boolean' : 'string', uniqueItems: true } })),
    ...(writes ? { requestBody: { content, required: true } } : {}),
    responses: { '200': { description: 'OK', content: { 'application/json': { schema } } } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: kind.group, version: kind.version, kind: kind.kind },
  }
}

export function patchTypes(kind: ServedKind): string[] {
  const all = ['application/json-patch+json', 'application/merge-patch+json']
  return [...all, ...(kind.custom ? [] : ['application/strategic-merge-patch+json']), 'application/apply-patch+yaml']
}
