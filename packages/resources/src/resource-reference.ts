import { API_GROUP, type KindDefinition, SERVED_VERSIONS, STORAGE_VERSION } from './schema/kind-definition.ts'
import { isRejected, type SchemaNode, type VisitedNode, walkSchema } from './schema/schema-walk.ts'

/** `docs/reference/resources.md`: every field of every kind. */
export function renderResourceReference(kinds: readonly KindDefinition[]): string {
  const parts = [
    '# Resource reference',
    '',
    'Generated from `packages/resources` by `npm run generate`. Do not edit.',
    '',
    `Group \`${API_GROUP}\`; versions ${SERVED_VERSIONS.map((version) => `\`${version}\``).join(' and ')} are served with one schema, \`${STORAGE_VERSION}\` is stored.`,
    'All kinds are namespaced, belong to the category `toolhive` (`kubectl get toolhive`) and have a `status` subresource.',
    '',
    '| kind | short names | what it is |',
    '|---|---|---|',
    ...kinds.map(
      (kind) => `| [${kind.kind}](#${kind.kind.toLowerCase()}) | ${kind.shortNames.map(code).join(', ')} | ${cell(kind.description)} |`,
    ),
    '',
    ...kinds.flatMap(section),
  ]
  return `${parts.join('\n').trimEnd()}\n`
}

function section(kind: KindDefinition): string[] {
  const spec = kind.spec as SchemaNode
  const status = kind.status as SchemaNode
  return [
    `## ${kind.kind}`,
    '',
    kind.description,
    '',
    `Plural \`${kind.plural}\`, short names ${kind.shortNames.map(code).join(', ')}.${kind.scale ? ' Has a `scale` subresource.' : ''}`,
    '',
    `Printed columns: ${kind.columns.map((column) => `${column.name} (${code(column.jsonPath)})`).join(', ')}.`,
    '',
    '### Spec',
    '',
    ...fieldTable(spec, 'spec'),
    ...ruleList(kind, spec),
    '### Status',
    '',
    ...fieldTable(status, 'status'),
  ]
}

function fieldTable(root: SchemaNode, path: string): string[] {
  const rows = [...walkSchema(root, path)].filter(({ path: at }) => at !== path && !at.endsWith('[]') && !at.endsWith('.<key>'))
  return ['| field | type | required | meaning |', '|---|---|---|---|', ...rows.map((row) => fieldRow(row, path)), '']
}

function fieldRow({ node, path, required }: VisitedNode, root: string): string {
  const name = code(path.slice(root.length + 1))
  const meaning = [node.description ?? '', ...constraintsOf(node)].join(' ')
  return `| ${isRejected(node) ? `~~${name}~~` : name} | ${typeOf(node)} | ${required ? 'yes' : ''} | ${cell(meaning)} |`
}

function typeOf(node: SchemaNode): string {
  if (node['x-kubernetes-int-or-string']) return 'integer or string'
  if (node.type === 'array') return `${node.items ? typeOf(node.items) : 'any'}[]`
  if (typeof node.additionalProperties === 'object') return `map of ${typeOf(node.additionalProperties)}`
  if (node.type === 'object' && node['x-kubernetes-preserve-unknown-fields']) return 'object (free)'
  if (node.type) return node.type
  return node.properties ? 'string or object' : 'any'
}

function constraintsOf(node: SchemaNode): string[] {
  const found: string[] = []
  if (node.enum) found.push(`One of ${node.enum.map((value) => code(String(value))).join(', ')}.`)
  if (node.default !== undefined) found.push(`Default ${code(JSON.stringify(node.default))}.`)
  if (typeof node['minimum'] === 'number') found.push(`At least ${node['minimum']}.`)
  if (typeof node['maximum'] === 'number') found.push(`At most ${node['maximum']}.`)
  if (typeof node['pattern'] === 'string') found.push(`Matches ${code(node['pattern'])}.`)
  return found
}

function ruleList(kind: KindDefinition, spec: SchemaNode): string[] {
  const rootRules = (kind.rules ?? []).map((rule) => `- the object: ${cell(rule.message)}`)
  const rules = [...walkSchema(spec, 'spec')].flatMap(({ node, path }) =>
    isRejected(node) ? [] : (node['x-kubernetes-validations'] ?? []).map((rule) => `- ${code(path)}: ${cell(rule.message)}`),
  )
  return rootRules.length + rules.length === 0 ? [] : ['Rules that the API server checks:', '', ...rootRules, ...rules, '']
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``
}

function cell(text: string): string {
  // Text in back-quotes is escaped already where it needs to be.
  return text
    .replaceAll(/(?<!\\)\|/g, '\\|')
    .replaceAll('<', '&lt;')
    .replaceAll('\n', ' ')
}
