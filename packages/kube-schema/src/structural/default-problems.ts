import { compileRules } from '../cel/rule-tree.ts'
import { runRules } from '../cel/run-rules.ts'
import { invalid } from '../field-problems.ts'
import type { FieldProblem, JsonObject } from '../kind-schema.ts'
import { isMap, type SchemaNode } from '../schema-node.ts'
import { isPruned } from './prune.ts'
import { compileValidator, validateRoot } from './validate-value.ts'

/** A default must itself be valid where it stands, and know no unknown fields. */
export function* defaultProblems(node: SchemaNode, field: string): Generator<FieldProblem> {
  if (node.default !== undefined) {
    const at = `${field}.default`
    if (!isPruned(node.default, node)) yield invalid(at, node.default, 'must not have unknown fields')
    const problems = validateRoot(compileValidator(node), { value: node.default, path: '', base: at })
    yield* problems
    if (problems.length === 0 && isMap(node.default)) yield* ruleProblems(node, node.default, at)
  }
  if (node.items) yield* defaultProblems(node.items, `${field}.items`)
  for (const [name, inner] of Object.entries(node.properties ?? {})) yield* defaultProblems(inner, `${field}.properties[${name}]`)
}

function* ruleProblems(node: SchemaNode, value: JsonObject, at: string): Generator<FieldProblem> {
  const { tree } = compileRules(node)
  if (!tree) return
  for (const problem of runRules(tree, value, undefined)) {
    const field = problem.field === '<nil>' ? at : `${at}.${problem.field}`
    yield { ...problem, field, detail: `${field}: ${problem.message}` }
  }
}
