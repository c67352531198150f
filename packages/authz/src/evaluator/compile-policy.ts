import { compileExpression } from './compile-expression.ts'
import { type Env, type Evaluate, isWithin } from './environment.ts'
import { UnsupportedPolicy, uidOfJson } from './json-value.ts'
import { type EntityUid, Failure, type Outcome, typeFailure, UNKNOWN } from './value.ts'

export interface CompiledPolicy {
  readonly id: string
  readonly effect: 'permit' | 'forbid'
  readonly annotations: Readonly<Record<string, string>>
  /** The scopes that a permit wants the caller to have, from `@scope("a b")`: without them it does not apply. */
  readonly scopes: readonly string[]
  /** Keys of the actions that the scope allows besides their descendants; undefined: any. */
  readonly actions: readonly string[] | undefined
  /** Key of the only resource that the scope allows; undefined: not so narrow. */
  readonly resource: string | undefined
  /** Names of the attributes that the conditions read, of whatever they read them. */
  readonly attributes: ReadonlySet<string>
  /** True, false, a failure, or unknown. */
  readonly evaluate: Evaluate
}

/** The JSON form of `policyToJson`. */
export interface PolicyJson {
  readonly effect: string
  readonly principal: Scope
  readonly action: Scope
  readonly resource: Scope
  readonly conditions: readonly { readonly kind: string; readonly body: unknown }[]
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

interface Scope {
  readonly op: string
  readonly entity?: unknown
  readonly entities?: readonly unknown[]
  readonly entity_type?: string
  readonly in?: { readonly entity?: unknown }
}

/** Throws UnsupportedPolicy where the evaluator cannot do what the policy says. */
export function compilePolicy(id: string, json: PolicyJson): CompiledPolicy {
  if (json.effect !== 'permit' && json.effect !== 'forbid') throw new UnsupportedPolicy(`the effect ${json.effect} is not supported`)
  const { annotations = {} } = json
  const principal = compileScope(json.principal, (env) => env.principal)
  const action = compileScope(json.action, (env) => env.action)
  const resource = compileScope(json.resource, (env) => env.resource)
  const conditions = json.conditions.map(({ kind, body }) => compileCondition(kind, body))
  return {
    id,
    effect: json.effect,
    annotations,
    scopes: scopesOf(json.effect, annotations),
    actions: actionKeys(json.action),
    resource: json.resource.op === '==' ? uidOfJson(json.resource.entity).key : undefined,
    attributes: new Set(attributesIn(json.conditions)),
    evaluate: (env) => (principal(env) && action(env) && resource(env) ? all(conditions, env) : false),
  }
}

function scopesOf(effect: string, { scope }: Readonly<Record<string, string>>): readonly string[] {
  if (scope === undefined) return []
  // A forbid that applied only to some tokens would be open to the others.
  if (effect === 'forbid') throw new UnsupportedPolicy('@scope is for permits only')
  const words = scope.split(' ').filter((word) => word !== '')
  // RFC 6749 §3.3
  if (words.length === 0 || !words.every((word) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(word)))
    throw new UnsupportedPolicy('@scope holds no scopes: write words, separated by spaces')
  return words
}

/** As `&&` in a row: false ends it, and so does a failure that comes before. */
function all(conditions: readonly Evaluate[], env: Env): Outcome {
  let unknown = false
  for (const condition of conditions) {
    const value = condition(env)
    if (value === false) return false
    if (value === UNKNOWN) unknown = true
    else if (value !== true && !unknown) return value
  }
  return unknown ? UNKNOWN : true
}

function compileCondition(kind: string, body: unknown): Evaluate {
  const evaluate = compileExpression(body)
  if (kind !== 'when' && kind !== 'unless') throw new UnsupportedPolicy(`the condition ${kind} is not supported`)
  const wanted = kind === 'when'
  return (env) => {
    const value = evaluate(env)
    if (typeof value === 'boolean') return value === wanted
    return value === UNKNOWN || value instanceof Failure ? value : typeFailure('bool', value)
  }
}

type Test = (env: Env) => boolean

function compileScope({ op, entity, entities, entity_type: type, in: within }: Scope, pick: (env: Env) => EntityUid): Test {
  switch (op) {
    case 'All':
      return () => true
    case '==': {
      const { key } = uidOfJson(entity)
      return (env) => pick(env).key === key
    }
    case 'in': {
      const above = (entities ?? [entity]).map(uidOfJson)
      return (env) => above.some((one) => isWithin(pick(env), one, env))
    }
    case 'is': {
      const above = within === undefined ? undefined : uidOfJson(within.entity)
      return (env) => pick(env).type === type && (above === undefined || isWithin(pick(env), above, env))
    }
    default:
      throw new UnsupportedPolicy(`the scope ${op} is not supported`)
  }
}

function actionKeys({ op, entity, entities }: Scope): readonly string[] | undefined {
  if (op === '==' || op === 'in') return (entities ?? [entity]).map((one) => uidOfJson(one).key)
  return undefined
}

/** `.` and `has` name them in `attr`; a path of `has` names several. */
function* attributesIn(node: unknown): Generator<string> {
  if (typeof node !== 'object' || node === null) return
  for (const [member, value] of Object.entries(node)) {
    const names = [value].flat()
    // Under any other value it is a member of a record that happens to have this name.
    if (member === 'attr' && names.every((name) => typeof name === 'string')) yield* names
    else yield* attributesIn(value)
  }
}
