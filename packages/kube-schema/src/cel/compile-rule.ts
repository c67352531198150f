import type { Environment } from '@marcbachmann/cel-js'
import type { ValidationRule } from '../schema-node.ts'
import { GoRegexpError, goRegexp } from '../values/go-regexp.ts'
import { celEnvironment } from './cel-environment.ts'
import type { CelType, FieldsOf } from './cel-types.ts'
import { withNamedElements } from './has-of-element.ts'
import { celEqual } from './library/cel-equality.ts'
import { libraryName } from './library/define.ts'
import { nodesOf, type TreeNode } from './syntax-tree.ts'

export interface CompiledRule {
  readonly rule: ValidationRule
  readonly usesOldSelf: boolean
  holds(variables: RuleVariables): boolean
  /** Only with a `messageExpression`. */
  message?(variables: RuleVariables): unknown
}

export type RuleVariables = Readonly<Record<'self' | 'oldSelf', unknown>>

export interface RuleProblem {
  readonly member: 'rule' | 'messageExpression' | 'optionalOldSelf'
  readonly text: string
}

export interface RuleScope {
  readonly self: CelType
  readonly fieldsOf: FieldsOf
  /** With `self` and `oldSelf` declared, the latter as an optional if so asked. `mixed`: lists may hold values of several types. */
  environment(options: EnvironmentOptions): Environment
}

interface EnvironmentOptions {
  readonly optionalOldSelf: boolean
  readonly mixed: boolean
}

/** The rules of one node share their environments: making one is what costs. */
export function ruleScope(environment: Environment, self: CelType, fieldsOf: FieldsOf): RuleScope {
  const made = new Map<string, Environment>()
  return {
    self,
    fieldsOf,
    environment({ optionalOldSelf, mixed }) {
      const key = `${optionalOldSelf} ${mixed}`
      const known = made.get(key)
      if (known) return known
      const fresh = environment.clone({ enableOptionalTypes: true, homogeneousAggregateLiterals: !mixed })
      fresh.registerVariable('self', self.name)
      fresh.registerVariable('oldSelf', optionalOldSelf ? `optional<${self.name}>` : self.name)
      made.set(key, fresh)
      return fresh
    },
  }
}

/** A rule that cannot be compiled refuses the whole CRD, as on the real server. */
export function compileRule(rule: ValidationRule, scope: RuleScope): { compiled?: CompiledRule; problems: RuleProblem[] } {
  const compile = (text: string, type: 'bool' | 'string') =>
    compileExpression(text, { environment: environmentFor(text, rule, scope), fieldsOf: scope.fieldsOf, type })
  const condition = compile(rule.rule, 'bool')
  if ('problem' in condition) return { problems: [{ member: 'rule', text: condition.problem }] }
  const problems: RuleProblem[] = []
  if (!condition.usesOldSelf && rule.optionalOldSelf !== undefined) {
    problems.push({ member: 'optionalOldSelf', text: 'may not be set if oldSelf is not used in rule' })
  }
  const message = rule.messageExpression ? compile(rule.messageExpression, 'string') : undefined
  if (message && 'problem' in message) problems.push({ member: 'messageExpression', text: `messageExpression ${message.problem}` })
  const compiled: CompiledRule = {
    rule,
    usesOldSelf: condition.usesOldSelf,
    holds: (variables) => condition.run(variables) === true,
    ...(message && 'run' in message && { message: message.run }),
  }
  return { compiled, problems }
}

/** Only the arguments of `format` may be of several types. */
function environmentFor(text: string, rule: ValidationRule, scope: RuleScope): Environment {
  return scope.environment({ optionalOldSelf: rule.optionalOldSelf === true, mixed: /\.format\s*\(/.test(text) })
}

interface Expected {
  readonly environment: Environment
  readonly fieldsOf: FieldsOf
  readonly type: 'bool' | 'string'
}

type Expression = { run(variables: RuleVariables): unknown; usesOldSelf: boolean } | { problem: string }

function compileExpression(text: string, { environment, fieldsOf, type }: Expected): Expression {
  try {
    const run = environment.parse(withNamedElements(text.trim(), environment))
    const nodes = nodesOf(run.ast)
    const badPattern = nodes.map(literalPatternProblem).find((problem) => problem !== undefined)
    if (badPattern) return { problem: `compilation failed: ERROR: <input>:1:1: ${badPattern}` }
    for (const node of nodes) leadToLibrary(node)
    const result = run.check()
    if (!result.valid) return { problem: `compilation failed: ERROR: <input>:1:1: ${firstLine(result.error)}` }
    // macros are expanded by now
    const checked = nodesOf(run.ast)
    for (const node of checked) useOurEquality(node)
    const undefinedField = checked.map((node) => undefinedFieldOf(node, fieldsOf)).find((name) => name !== undefined)
    if (undefinedField) return { problem: `compilation failed: ERROR: <input>:1:1: undefined field '${undefinedField}'` }
    if (result.type !== type && !(type === 'bool' && result.type === 'dyn')) {
      return { problem: type === 'bool' ? 'cel expression must evaluate to a bool' : 'must evaluate to a string' }
    }
    return { run, usesOldSelf: nodes.some((node) => node.op === 'id' && node.args === 'oldSelf') }
  } catch (error) {
    return { problem: `compilation failed: ERROR: <input>:1:1: ${firstLine(error)}` }
  }
}

/** cel-js does not let us replace a function, so the call is renamed. */
function leadToLibrary(node: TreeNode): void {
  if ((node.op !== 'rcall' && node.op !== 'call') || !Array.isArray(node.args)) return
  const name: unknown = node.args[0]
  if (typeof name === 'string' && celEnvironment().libraryNames.has(name)) node.args[0] = libraryName(name)
}

/** cel-js has fixed the handlers of operators by now; ours has the same shape. */
function useOurEquality(node: TreeNode): void {
  if (node.op === '==') node.handle = celEqual
  else if (node.op === '!=') node.handle = (a, b) => !celEqual(a, b)
}

/** The real server checks patterns that are written out in the rule. */
function literalPatternProblem(node: TreeNode): string | undefined {
  if (node.op !== 'rcall' || !Array.isArray(node.args) || node.args[0] !== 'matches') return undefined
  const [argument] = node.args[2] as TreeNode[]
  if (argument?.op !== 'value' || typeof argument.args !== 'string') return undefined
  try {
    goRegexp(argument.args)
    return undefined
  } catch (error) {
    if (error instanceof GoRegexpError) return `invalid matches argument: ${error.message}`
    throw error
  }
}

/** cel-js takes `has(self.x)` for any x; Kubernetes wants x in the schema. */
function undefinedFieldOf(node: TreeNode, fieldsOf: FieldsOf): string | undefined {
  if (node.op !== 'call' || !Array.isArray(node.args) || node.args[0] !== 'has') return undefined
  const [argument] = node.args[1] as TreeNode[]
  const names: string[] = []
  let at: TreeNode | undefined = argument
  while (at && (at.op === '.' || at.op === '.?') && Array.isArray(at.args)) {
    names.unshift(String(at.args[1]))
    at = at.args[0] as TreeNode
  }
  let fields = at?.checkedType && fieldsOf(at.checkedType.name)
  for (const name of names) {
    if (!fields) return undefined
    const type = fields.get(name)
    if (!type) return name
    fields = type.fields
  }
  return undefined
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
}
