import type { Command, Node, Operand, Pipe } from '../template/nodes.ts'
import type { Template } from '../template/template.ts'

/** A path from the root of the data that a template reads, such as `steps build output number`. */
export interface Reference {
  readonly path: readonly string[]
  /** Offset in the source. */
  readonly at: number
  /** Nothing is all right there: an operand of `and`, `or`, `not`, or the value of `if` and `with`. */
  readonly isOptional: boolean
}

/** Undefined: a value that is not simply a part of the data. */
type Path = readonly string[] | undefined

/** Every path that is known without running the template: through `with`, variables and `index` with constants. */
export function referencesOf({ syntax }: Template): Reference[] {
  const found: Reference[] = []
  const paths: Path[] = [[]]
  const reassigned = new Set<number>()
  collectAssigned(syntax.nodes, reassigned)
  walk(syntax.nodes, [])
  return found

  function walk(nodes: readonly Node[], dot: Path): void {
    for (const node of nodes) {
      if (node.kind === 'action') pipe(node.pipe, dot, false)
      if (node.kind === 'if' || node.kind === 'with') {
        const value = pipe(node.pipe, dot, true)
        walk(node.body, node.kind === 'with' ? value : dot)
        walk(node.otherwise, dot)
      }
      if (node.kind === 'range') {
        pipe(node.pipe, dot, true)
        for (const { slot } of node.pipe.variables) paths[slot] = undefined
        walk(node.body, undefined)
        walk(node.otherwise, dot)
      }
    }
  }

  function pipe({ commands, variables, assigns }: Pipe, dot: Path, isOptional: boolean): Path {
    let value: Path
    for (const each of commands) value = command(each, dot, isOptional)
    if (commands.length > 1) value = undefined
    for (const { slot } of variables) paths[slot] = assigns || reassigned.has(slot) ? undefined : value
    return value
  }

  function command({ operands: [first, ...others] }: Command, dot: Path, isOptional: boolean): Path {
    if (first.kind !== 'function') return operand(first, dot, isOptional)
    const isTest = first.name === 'and' || first.name === 'or' || first.name === 'not'
    if (first.name === 'index' && others[0]) return indexed(others[0], others.slice(1), { dot, isOptional })
    for (const other of others) operand(other, dot, isTest)
    return undefined
  }

  /** `index .steps "a" "output"` is the path `.steps.a.output`. */
  function indexed(value: Operand, indexes: readonly Operand[], { dot, isOptional }: { dot: Path; isOptional: boolean }): Path {
    const names = indexes.map((index) => (index.kind === 'literal' && typeof index.value === 'string' ? index.value : undefined))
    for (const index of indexes) operand(index, dot, false)
    const base = pathOf(value, dot)
    if (!base || names.includes(undefined)) {
      operand(value, dot, false)
      return undefined
    }
    const path = [...base, ...names.filter((name) => name !== undefined)]
    found.push({ path, at: value.at, isOptional })
    return path
  }

  function operand(value: Operand, dot: Path, isOptional: boolean): Path {
    if (value.kind === 'chain') {
      const head = value.head.kind === 'pipe' ? pipe(value.head, dot, isOptional) : undefined
      if (!head || value.fields.length === 0) return head
      const path = [...head, ...value.fields]
      found.push({ path, at: value.at, isOptional })
      return path
    }
    const path = pathOf(value, dot)
    if (path && path.length > 0) found.push({ path, at: value.at, isOptional })
    return path
  }

  function pathOf(value: Operand, dot: Path): Path {
    if (value.kind === 'dot') return dot && [...dot, ...value.fields]
    if (value.kind !== 'variable') return undefined
    const base = paths[value.slot]
    return base && [...base, ...value.fields]
  }
}

/** Variables that a branch or a loop may change mean nothing certain. */
function collectAssigned(nodes: readonly Node[], slots: Set<number>): void {
  for (const node of nodes) {
    if (!('pipe' in node)) continue
    if (node.pipe.assigns) for (const { slot } of node.pipe.variables) slots.add(slot)
    if (node.kind !== 'action') {
      collectAssigned(node.body, slots)
      collectAssigned(node.otherwise, slots)
    }
  }
}
