import { REJECTED } from './nodes.ts'

/** A node of a resource schema, as far as a walker needs it. */
export interface SchemaNode {
  type?: string
  description?: string
  properties?: Record<string, SchemaNode>
  items?: SchemaNode
  additionalProperties?: SchemaNode | boolean
  required?: readonly string[]
  enum?: readonly unknown[]
  default?: unknown
  'x-kubernetes-validations'?: readonly { rule: string; message: string }[]
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  [key: string]: unknown
}

export interface VisitedNode {
  node: SchemaNode
  /** `spec.env[].name`, `spec.labels.<key>` */
  path: string
  parents: readonly SchemaNode[]
  required: boolean
}

/** Visits a schema and everything below it, parents first. */
export function* walkSchema(root: SchemaNode, path: string): Generator<VisitedNode> {
  yield* visit({ node: root, path, parents: [], required: false })
}

function* visit(visited: VisitedNode): Generator<VisitedNode> {
  yield visited
  const { node, path } = visited
  const parents = [...visited.parents, node]
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    yield* visit({ node: child, path: `${path}.${name}`, parents, required: node.required?.includes(name) ?? false })
  }
  if (node.items) yield* visit({ node: node.items, path: `${path}[]`, parents, required: false })
  if (typeof node.additionalProperties === 'object') {
    yield* visit({ node: node.additionalProperties, path: `${path}.<key>`, parents, required: false })
  }
}

/** Nothing of the schema lies below it: its value is set as a whole. */
export function isLeaf(node: SchemaNode): boolean {
  if (node['x-kubernetes-preserve-unknown-fields'] === true) return true
  return !node.properties && !node.items && typeof node.additionalProperties !== 'object'
}

export function isRejected(node: SchemaNode): boolean {
  return node[REJECTED] === true
}

/** The leaf paths that an object sets, in the notation of `walkSchema`. */
export function leafPathsOf(value: unknown, root: SchemaNode, path: string): Set<string> {
  const found = new Set<string>()
  collect(value, root, path)
  return found

  function collect(member: unknown, node: SchemaNode, at: string): void {
    if (member === undefined || member === null) return
    if (isLeaf(node)) {
      found.add(at)
      return
    }
    if (Array.isArray(member)) {
      if (node.items) for (const item of member) collect(item, node.items, `${at}[]`)
      return
    }
    if (typeof member !== 'object') return
    for (const [name, child] of Object.entries(member)) {
      const property = node.properties?.[name]
      if (property) collect(child, property, `${at}.${name}`)
      else if (typeof node.additionalProperties === 'object') collect(child, node.additionalProperties, `${at}.<key>`)
    }
  }
}
