import { type SchemaNode, walkSchema } from './schema-walk.ts'

/** Finds schemas that the API server would reject, and missing descriptions, without a server. Empty when all is well. */
export function lintSchema(root: SchemaNode, path: string): string[] {
  const findings: string[] = []
  for (const { node, path: at, parents, required } of walkSchema(root, path)) {
    const say = (what: string) => findings.push(`${at}: ${what}`)
    if (!node.description) say('has no description')
    for (const keyword of FORBIDDEN) if (keyword in node) say(`uses ${keyword}, which is not structural`)
    if (((node['anyOf'] as SchemaNode[] | undefined) ?? []).some((alternative) => !isDemand(alternative)))
      say('anyOf may only require fields')
    if (required && node.default !== undefined) say('is required and has a default')
    if (node['x-kubernetes-validations']) {
      const unbounded = [...parents].filter((parent) => hasChildrenWithoutLimit(parent))
      if (unbounded.length > 0) say('has a rule below a list or map without maxItems or maxProperties: its cost cannot be estimated')
      if (!node.type) say('has a rule but no type')
    }
  }
  return findings
}

const FORBIDDEN = ['const', 'patternProperties', '$ref', 'oneOf', 'allOf', 'definitions', '$defs']

function isDemand(node: SchemaNode): boolean {
  return (
    Object.keys(node).every((key) => key === 'required' || key === 'properties') && Object.values(node.properties ?? {}).every(isDemand)
  )
}

function hasChildrenWithoutLimit(node: SchemaNode): boolean {
  if (node.type === 'array') return node['maxItems'] === undefined
  return typeof node.additionalProperties === 'object' && node['maxProperties'] === undefined
}
