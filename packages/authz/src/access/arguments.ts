import type { Value } from '../evaluator/value.ts'
import { numberOf } from './json-facts.ts'

/** Begins the names of all attributes that come from the arguments of a call. */
export const ARGUMENT_PREFIX = 'arg_'

const NONE: ReadonlyMap<string, Value> = new Map()

/**
 * Text, booleans and numbers of a call as `arg_NAME`. Of everything else, a policy can only see that it is there: `arg_NAME_present`. An
 * argument that is itself called `NAME_present` cannot hide that.
 */
export function argumentFacts(args: { readonly [name: string]: unknown } | undefined): ReadonlyMap<string, Value> {
  if (args === undefined) return NONE
  const facts = new Map<string, Value>()
  let opaque: string[] | undefined
  for (const name in args) {
    const argument = args[name]
    const value = typeof argument === 'string' || typeof argument === 'boolean' ? argument : scalar(argument)
    if (value !== undefined) facts.set(ARGUMENT_PREFIX + name, value)
    else if (opaque === undefined) opaque = [name]
    else opaque.push(name)
  }
  if (opaque !== undefined) for (const name of opaque) facts.set(`${ARGUMENT_PREFIX}${name}_present`, true)
  return facts
}

function scalar(argument: unknown): Value | undefined {
  return typeof argument === 'number' ? numberOf(argument) : undefined
}
