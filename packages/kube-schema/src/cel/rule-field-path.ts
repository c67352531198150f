import { childField, keyField } from '../field-path.ts'
import { furtherOf, propertyOf, type SchemaNode } from '../schema-node.ts'

/** `.a.b['c']` below a field; the names of maps get brackets. */
export function ruleFieldPath(field: string, path: string, node: SchemaNode): string {
  const steps = parseRuleFieldPath(path, node) ?? []
  return steps.reduce((at, { name, isKey }) => (isKey ? keyField(at, name) : childField(at, name)), field)
}

/** Undefined when the path leads nowhere in the schema: the CRD is then refused. */
export function parseRuleFieldPath(path: string, node: SchemaNode): { name: string; isKey: boolean }[] | undefined {
  const steps: { name: string; isKey: boolean }[] = []
  let at: SchemaNode | undefined = node
  for (const token of path.matchAll(/\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]|(.)/gs)) {
    const [, dotted, quoted, other] = token
    const name = dotted ?? quoted?.replace(/\\(.)/g, '$1')
    if (other !== undefined || name === undefined || !at) return undefined
    const isKey: boolean = at.properties === undefined
    at = isKey ? furtherOf(at) : propertyOf(at, name)
    if (!at) return undefined
    steps.push({ name, isKey })
  }
  return steps.length > 0 ? steps : undefined
}
