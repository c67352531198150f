import { Environment } from '@marcbachmann/cel-js'
import { errorMessage, ThvError } from '@thv/kernel/errors'

export type ActorMatcher = (claims: Readonly<Record<string, unknown>>) => boolean

const LIMITS = { maxAstNodes: 2_000, maxDepth: 50, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 }

/** Steps that one token may cost. Claims that would take more match no actor. */
const MAX_STEPS = 1_000_000
/** Each takes its body through all elements of a list. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])

/** A CEL expression over `claims`. An expression that fails, or is not `true`, matches no actor. Throws `run_config_invalid`. */
export function compileActorMatcher(expression: string, issuer: string): ActorMatcher {
  const environment = new Environment({ limits: LIMITS }).registerVariable('claims', 'map<string, dyn>')
  const invalid = (reason: string) =>
    new ThvError('run_config_invalid', `embedded_auth_server_config.trusted_issuers: actor_matcher of ${issuer} ${reason}`)
  let run: ReturnType<Environment['parse']>
  try {
    const checked = environment.check(expression)
    if (!checked.valid) throw checked.error ?? new Error('is invalid')
    run = environment.parse(expression)
    if (checked.type !== 'bool' && checked.type !== 'dyn') throw new Error(`is of type ${checked.type}, not bool`)
    const problem = patternProblem(run.ast)
    if (problem !== undefined) throw new Error(problem)
  } catch (error) {
    throw invalid(`is not a CEL condition over claims: ${errorMessage(error).split('\n')[0]}`)
  }
  const cost = costOf(run.ast)
  return (claims) => {
    try {
      if (cost.nodes * largestList(claims) ** cost.loops > MAX_STEPS) return false
      return run({ claims: celValue(claims) }) === true
    } catch {
      return false // such as a claim that this token does not have
    }
  }
}

/** Whole numbers are ints, as they are written in expressions. */
function celValue(value: unknown): unknown {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  if (Array.isArray(value)) return value.map(celValue)
  if (typeof value !== 'object' || value === null) return value
  return new Map(Object.entries(value).map(([name, member]) => [name, celValue(member)]))
}

interface Cost {
  readonly nodes: number
  /** Loops inside each other, at most. */
  readonly loops: number
}

/** Every node counts once for each element of the loops around it. */
function costOf(value: unknown): Cost {
  const children = Array.isArray(value) ? value : isNode(value) ? [value.args] : []
  const costs = children.map(costOf)
  const nodes = costs.reduce((sum, cost) => sum + cost.nodes, isNode(value) ? 1 : 0)
  const inner = Math.max(0, ...costs.map(({ loops }) => loops))
  return { nodes, loops: inner + (LOOPS.has(methodOf(value) ?? '') ? 1 : 0) }
}

/** A repeated group takes exponential time with some texts, which come from elsewhere. Undefined: none. */
function patternProblem(value: unknown): string | undefined {
  const children = Array.isArray(value) ? value : isNode(value) ? [value.args] : []
  for (const child of children) {
    const problem = patternProblem(child)
    if (problem !== undefined) return problem
  }
  if (methodOf(value) !== 'matches') return undefined
  const [, , [pattern]] = (value as { args: [string, unknown, unknown[]] }).args
  const text = isNode(pattern) && pattern.op === 'value' ? pattern.args : undefined
  if (typeof text !== 'string') return 'matches needs a pattern that is a literal text'
  return /\)[*+{]/.test(text) ? 'matches must not repeat a group' : undefined
}

function isNode(value: unknown): value is { readonly op: string; readonly args: unknown } {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value
}

/** Of a call on a receiver, such as `claims.groups.exists(…)`. */
function methodOf(value: unknown): string | undefined {
  return isNode(value) && value.op === 'rcall' && Array.isArray(value.args) ? String(value.args[0]) : undefined
}

function largestList(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  const members = Object.values(value)
  return members.reduce<number>((most, member) => Math.max(most, largestList(member)), Math.max(1, members.length))
}
