/** The parts of cel-js' syntax tree that we look at; `args` depends on `op`. */
export interface TreeNode {
  readonly op: string
  args: unknown
  /** How a checked operator is carried out. */
  handle?: (left: unknown, right: unknown) => boolean
  readonly checkedType?: { readonly kind: string; readonly name: string; readonly valueType?: { readonly name: string } }
}

/** Every node once, whatever holds it: macros keep their expansion in properties of their own. */
export function nodesOf(root: unknown): TreeNode[] {
  const found: TreeNode[] = []
  const seen = new Set<unknown>()
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next !== 'object' || next === null || seen.has(next)) continue
    seen.add(next)
    if (isNode(next)) found.push(next)
    if (Array.isArray(next)) waiting.push(...next)
    else if (isNode(next)) waiting.push(next.args, ...Object.values(next).filter((value) => value !== next.checkedType))
    else if (isPlain(next)) waiting.push(...Object.values(next))
  }
  return found
}

function isNode(value: object): value is TreeNode {
  return 'op' in value && typeof value.op === 'string' && 'args' in value
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
