import { Environment } from '@marcbachmann/cel-js'
import { errorMessage, ThvError } from '@thv/kernel/errors'

export type ActorMatcher = (claims: Readonly<Record<string, unknown>>) => boolean

const LIMITS = { maxAstNodes: 2_000, maxDepth: 50, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 }

/** A CEL expression over `claims`. An expression that fails, or is not `true`, matches no actor. Throws `run_config_invalid`. */
export function compileActorMatcher(expression: string, issuer: string): ActorMatcher {
  const environment = new Environment({ limits: LIMITS }).registerVariable('claims', 'map<string, dyn>')
  const invalid = (reason: string) =>
    new ThvError('run_config_invalid', `embedded_auth_server_config.trusted_issuers: actor_matcher of ${issuer} ${reason}`)
  let run: (context: object) => unknown
  try {
    const checked = environment.check(expression)
    if (!checked.valid) throw checked.error ?? new Error('is invalid')
    run = environment.parse(expression)
    if (checked.type !== 'bool' && checked.type !== 'dyn') throw new Error(`is of type ${checked.type}, not bool`)
  } catch (error) {
    throw invalid(`is not a CEL condition over claims: ${errorMessage(error).split('\n')[0]}`)
  }
  return (claims) => {
    try {
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
