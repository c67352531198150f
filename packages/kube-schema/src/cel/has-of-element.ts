import type { Environment } from '@marcbachmann/cel-js'
import { nodesOf, type TreeNode } from './syntax-tree.ts'

const MAX_REWRITES = 64

/**
 * cel-js takes `has` of a path that begins with a name only. `has(self.list[0].x)` becomes `[self.list[0]].exists(v, has(v.x))`, which
 * means the same: the element is evaluated first, and its errors count.
 */
export function withNamedElements(text: string, environment: Environment): string {
  let rewritten = text
  for (let i = 0; i < MAX_REWRITES; i += 1) {
    const found = elementTest(nodesOf(environment.parse(rewritten).ast))
    if (found === undefined) return rewritten
    const { call, argument, element } = found
    const name = `__element${i}`
    const path = rewritten.slice(element.end, argument.end)
    const replacement = `[${rewritten.slice(element.start, element.end)}].exists(${name}, has(${name}${path}))`
    rewritten = `${rewritten.slice(0, call.start)}${replacement}${rewritten.slice(call.end)}`
  }
  throw new RangeError(`has() is used on more than ${MAX_REWRITES} elements`)
}

interface Placed extends TreeNode {
  readonly start: number
  readonly end: number
}

function elementTest(nodes: readonly TreeNode[]): { call: Placed; argument: Placed; element: Placed } | undefined {
  for (const call of nodes) {
    if (call.op !== 'call' || !Array.isArray(call.args) || call.args[0] !== 'has') continue
    const [argument] = call.args[1] as TreeNode[]
    let at = argument
    while (at && at.op === '.' && Array.isArray(at.args)) at = at.args[0] as TreeNode
    if (argument?.op !== '.' || at === undefined || (at.op !== '[]' && at.op !== '[?]')) continue
    return { call: call as Placed, argument: argument as Placed, element: at as Placed }
  }
  return undefined
}
