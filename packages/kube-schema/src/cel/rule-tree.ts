import { furtherOf, type SchemaNode } from '../schema-node.ts'
import { celEnvironment } from './cel-environment.ts'
import { type CelType, createTypes } from './cel-types.ts'
import { type CompiledRule, compileRule, type RuleProblem, ruleScope } from './compile-rule.ts'

/** The rules of a schema in the shape of the schema; branches without rules are left out. */
export interface RuleTree {
  readonly type: CelType
  readonly rules: readonly CompiledRule[]
  readonly properties: ReadonlyMap<string, RuleTree>
  readonly element?: RuleTree
}

export interface PlacedRuleProblem extends RuleProblem {
  /** Of the node below the root of the schema: `.properties[spec].items`. */
  readonly at: string
  readonly index: number
  readonly node: SchemaNode
}

export function compileRules(root: SchemaNode): { tree?: RuleTree; problems: PlacedRuleProblem[] } {
  if (!hasRules(root)) return { problems: [] }
  const environment = celEnvironment().forSchema()
  const types = createTypes(environment)
  const problems: PlacedRuleProblem[] = []
  const rootType = types.of(root, true)

  function treeOf(type: CelType, at: string): RuleTree | undefined {
    const { node } = type
    if (!hasRules(node)) return undefined
    const scope = ruleScope(environment, type, types.fieldsOf)
    const rules = (node['x-kubernetes-validations'] ?? []).flatMap((rule, index) => {
      const { compiled, problems: found } = compileRule(rule, scope)
      problems.push(...found.map((problem) => ({ ...problem, at, index, node })))
      return compiled ? [compiled] : []
    })
    const properties = new Map<string, RuleTree>()
    for (const [name, property] of type.properties ?? []) {
      const tree = treeOf(property, `${at}.properties[${name}]`)
      if (tree) properties.set(name, tree)
    }
    const element = type.element && treeOf(type.element, `${at}.${node.type === 'array' ? 'items' : 'additionalProperties'}`)
    return { type, rules, properties, ...(element && { element }) }
  }

  const tree = rootType && treeOf(rootType, '')
  return { ...(tree && { tree }), problems }
}

function hasRules(node: SchemaNode): boolean {
  const further = furtherOf(node)
  return (
    (node['x-kubernetes-validations']?.length ?? 0) > 0 ||
    (node.items !== undefined && hasRules(node.items)) ||
    (further !== undefined && hasRules(further)) ||
    Object.values(node.properties ?? {}).some(hasRules)
  )
}
