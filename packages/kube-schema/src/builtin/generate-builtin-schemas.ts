import { BUILTIN_KINDS, DOCUMENTED_IN } from './builtin-kinds.ts'

/** A node of the real server's OpenAPI v3 documents. */
interface OpenApiNode {
  readonly [member: string]: unknown
}

interface OpenApiDocument {
  readonly components: { readonly schemas: Readonly<Record<string, OpenApiNode>> }
}

/** Members to keep: no prose, nothing that only generators of clients read. */
const KEPT = [
  'type',
  'format',
  'required',
  'enum',
  'default',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-preserve-unknown-fields',
]

/**
 * The schemas of our built-in kinds from the real server's OpenAPI, with all that they refer to, as the text of the
 * generated file. Deterministic: CI compares it with the real server.
 */
export async function generateBuiltinSchemas(getDocument: (path: string) => Promise<unknown>): Promise<string> {
  const kinds: [string, string][] = []
  const found = new Map<string, object>()
  for (const [groupVersion, names] of Object.entries(BUILTIN_KINDS)) {
    const source = DOCUMENTED_IN[groupVersion] ?? groupVersion
    const document = (await getDocument(`/openapi/v3/${source.includes('/') ? 'apis' : 'api'}/${source}`)) as OpenApiDocument
    for (const name of names) {
      const id = schemaOf(document, groupVersion, name)
      kinds.push([`${groupVersion} ${name}`, id])
      collect(id, document, found)
    }
  }
  const sorted = [...found].sort(([a], [b]) => (a < b ? -1 : 1))
  return `{"kinds": {\n${lines(kinds)}\n},\n"schemas": {\n${lines(sorted)}\n}}\n`
}

/** One line each: a diff shows which schema changed. */
function lines(members: readonly (readonly [string, unknown])[]): string {
  return members.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(',\n')
}

function schemaOf(document: OpenApiDocument, groupVersion: string, kind: string): string {
  const [group, version] = groupVersion.includes('/') ? groupVersion.split('/') : ['', groupVersion]
  for (const [id, node] of Object.entries(document.components.schemas)) {
    const names = (node['x-kubernetes-group-version-kind'] ?? []) as readonly { group: string; version: string; kind: string }[]
    if (names.length === 1 && names.some((name) => name.group === group && name.version === version && name.kind === kind)) return id
  }
  throw new Error(`the OpenAPI document of ${groupVersion} has no ${kind}`)
}

function collect(id: string, document: OpenApiDocument, found: Map<string, object>): void {
  const node = document.components.schemas[id]
  if (found.has(id) || !node) return
  found.set(id, {})
  found.set(
    id,
    slim(node, (reference) => collect(reference, document, found)),
  )
}

function slim(node: OpenApiNode, refer: (id: string) => void): object {
  const reference = referenceOf(node)
  if (reference !== undefined) refer(reference)
  const properties = node['properties'] as Readonly<Record<string, OpenApiNode>> | undefined
  const further = node['additionalProperties']
  const items = node['items'] as OpenApiNode | undefined
  return {
    ...Object.fromEntries(KEPT.filter((name) => node[name] !== undefined).map((name) => [name, node[name]])),
    ...(reference !== undefined && { $ref: reference }),
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, slim(inner, refer)])) }),
    ...(typeof further === 'object' && further !== null && { additionalProperties: slim(further as OpenApiNode, refer) }),
    ...(items && { items: slim(items, refer) }),
  }
}

/** A reference with further members is wrapped in `allOf`. */
function referenceOf(node: OpenApiNode): string | undefined {
  const wrapped = (node['allOf'] as readonly OpenApiNode[] | undefined)?.[0]
  const text = node['$ref'] ?? wrapped?.['$ref']
  return typeof text === 'string' ? text.replace('#/components/schemas/', '') : undefined
}
