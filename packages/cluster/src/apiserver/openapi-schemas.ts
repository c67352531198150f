import type { JsonObject } from './kind-schema.ts'
import type { OpenApiSchemas } from './openapi.ts'
import type { ServedKind } from './served-kind.ts'

/** The schema of each kind under its own name. Metadata are told as an object: clients know them. */
export const openApiSchemas: OpenApiSchemas = {
  schemasOf(kind) {
    const root = schemaName(kind)
    const gvk = { group: kind.group, version: kind.version, kind: kind.kind }
    const schema: JsonObject = { type: 'object', ...kind.openApi, 'x-kubernetes-group-version-kind': [gvk] }
    return { root, schemas: { [root]: schema } }
  },
}

/** `com.example.v1.Widget` for example.com/v1 Widget, as the real server names them. */
function schemaName({ group, version, kind }: ServedKind): string {
  const reversed = group === '' ? ['io', 'k8s', 'api', 'core'] : group.split('.').reverse()
  return [...reversed, version, kind].join('.')
}
