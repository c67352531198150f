import { isInRange, isLoopback, isMulticast, parseAddress } from './addresses.ts'
import { durationSince, inUnits, offsetBy, parseDatetime, parseDuration, toDate, toTime } from './times.ts'
import { Extension, type ExtensionType, Failure, isLong, type Outcome, typeFailure, type Value } from './value.ts'

/* Every extension function of Cedar: constructors and methods, by the name that the JSON form of a policy uses. */

export interface ExtensionFunction {
  /** Types of the arguments, in order. */
  readonly takes: readonly ('string' | ExtensionType)[]
  apply(...args: never[]): Value | Failure
}

const parser = (apply: (text: string) => Extension | Failure): ExtensionFunction => ({ takes: ['string'], apply })
const method = (type: ExtensionType, apply: (it: Extension) => Value | Failure): ExtensionFunction => ({ takes: [type], apply })
const compare = (apply: (a: bigint, b: bigint) => boolean): ExtensionFunction => ({
  takes: ['decimal', 'decimal'],
  apply: (a: Extension, b: Extension) => apply(a.number, b.number),
})

export const EXTENSION_FUNCTIONS: ReadonlyMap<string, ExtensionFunction> = new Map<string, ExtensionFunction>([
  ['decimal', parser(parseDecimal)],
  ['lessThan', compare((a, b) => a < b)],
  ['lessThanOrEqual', compare((a, b) => a <= b)],
  ['greaterThan', compare((a, b) => a > b)],
  ['greaterThanOrEqual', compare((a, b) => a >= b)],
  ['ip', parser(parseAddress)],
  ['isIpv4', method('ipaddr', ({ bits }) => bits === 32)],
  ['isIpv6', method('ipaddr', ({ bits }) => bits === 128)],
  ['isLoopback', method('ipaddr', isLoopback)],
  ['isMulticast', method('ipaddr', isMulticast)],
  ['isInRange', { takes: ['ipaddr', 'ipaddr'], apply: isInRange }],
  ['datetime', parser(parseDatetime)],
  ['offset', { takes: ['datetime', 'duration'], apply: offsetBy }],
  ['durationSince', { takes: ['datetime', 'datetime'], apply: durationSince }],
  ['toDate', method('datetime', toDate)],
  ['toTime', method('datetime', toTime)],
  ['duration', parser(parseDuration)],
  ['toMilliseconds', method('duration', (it) => inUnits(it, 1n))],
  ['toSeconds', method('duration', (it) => inUnits(it, 1_000n))],
  ['toMinutes', method('duration', (it) => inUnits(it, 60_000n))],
  ['toHours', method('duration', (it) => inUnits(it, 3_600_000n))],
  ['toDays', method('duration', (it) => inUnits(it, 86_400_000n))],
])

/** Undefined when the argument fits. */
export function argumentFailure(expected: 'string' | ExtensionType, value: Value): Failure | undefined {
  const fits = expected === 'string' ? typeof value === 'string' : value instanceof Extension && value.type === expected
  return fits ? undefined : typeFailure(expected, value)
}

/** Up to four digits behind the point, and at least one on each side. */
export function parseDecimal(text: string): Extension | Failure {
  const match = /^(-?)(\d+)\.(\d{1,4})$/.exec(text)
  const steps = match && BigInt(`${match[2]}${(match[3] ?? '').padEnd(4, '0')}`) * (match[1] === '-' ? -1n : 1n)
  if (steps !== null && isLong(steps)) return new Extension('decimal', steps)
  return new Failure(`error while evaluating \`decimal\` extension function: ${JSON.stringify(text)} is not a decimal`)
}

/** The value of `{"__extn": {"fn", "arg"}}`. */
export function extensionOf(fn: string, args: readonly Outcome[]): Outcome {
  const known = EXTENSION_FUNCTIONS.get(fn)
  if (known === undefined || known.takes.length !== args.length) return new Failure(`unknown extension function ${fn}`)
  for (const [at, type] of known.takes.entries()) {
    const failure = argumentFailure(type, args[at] as Value)
    if (failure !== undefined) return failure
  }
  return known.apply(...(args as never[]))
}
