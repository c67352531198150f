import { ThvError } from './errors.ts'

/**
 * Durations as Go writes them, because Kubernetes manifests and the configuration of ToolHive (Go) do: time.ParseDuration and
 * time.Duration.String, with milliseconds as the unit on our side. As in Go the range is that of int64 nanoseconds.
 */
export function parseDuration(text: string): number {
  const ns = parseNanoseconds(text)
  if (typeof ns === 'bigint') return Number(ns / NS_PER_MS) + Number(ns % NS_PER_MS) / 1e6
  throw new ThvError('duration_invalid', `invalid duration ${JSON.stringify(shorten(text))}: ${ns.problem}`)
}

export function tryParseDuration(text: string): number | undefined {
  const ns = parseNanoseconds(text)
  return typeof ns === 'bigint' ? Number(ns / NS_PER_MS) + Number(ns % NS_PER_MS) / 1e6 : undefined
}

/** As Go prints: "1h30m0s", "1.5s", "250µs", "0s". Rounds to whole nanoseconds. */
export function formatDuration(ms: number): string {
  const whole = Math.trunc(ms)
  const ns = Number.isFinite(ms) ? BigInt(whole) * NS_PER_MS + BigInt(Math.round((ms - whole) * 1e6)) : undefined
  if (ns === undefined || ns > MAX_NS || ns < -MAX_NS - 1n) {
    throw new ThvError('duration_invalid', `cannot print ${ms} ms as a duration: not a number below about 292 years`)
  }
  return ns < 0n ? `-${formatNanoseconds(-ns)}` : formatNanoseconds(ns)
}

const MAX_NS = 2n ** 63n - 1n
const NS_PER_MS = 1_000_000n
const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['\u00b5s', 1_000n], // micro sign
  ['\u03bcs', 1_000n], // Greek mu
  ['ms', NS_PER_MS],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
])

interface Problem {
  readonly problem: string
}

function parseNanoseconds(text: string): bigint | Problem {
  const sign = /^[+-]/.exec(text)?.[0] ?? ''
  const body = text.slice(sign.length)
  if (body === '0') return 0n
  if (body === '') return { problem: 'no number in it' }

  let total = 0n
  const part = /([0-9]*)(?:\.([0-9]*))?([^0-9.]*)/y
  while (part.lastIndex < body.length) {
    const [, whole = '', fraction = '', unitName = ''] = part.exec(body) ?? []
    const ns = partNanoseconds(whole, fraction, unitName)
    if (typeof ns !== 'bigint') return ns
    total += ns
    if (total > MAX_NS + 1n) return OUT_OF_RANGE
  }
  if (sign === '-') return -total
  return total > MAX_NS ? OUT_OF_RANGE : total
}

const OUT_OF_RANGE: Problem = { problem: 'beyond the range of 64-bit nanoseconds' }

function partNanoseconds(whole: string, fraction: string, unitName: string): bigint | Problem {
  if (whole === '' && fraction === '') return { problem: 'a number is missing' }
  if (unitName === '') return { problem: 'a unit is missing (ns, us, ms, s, m, h)' }
  const unit = UNITS.get(unitName)
  if (unit === undefined) return { problem: `unknown unit ${JSON.stringify(shorten(unitName))} (known: ns, us, ms, s, m, h)` }
  const digits = whole.replace(/^0+/, '')
  if (digits.length > 19) return OUT_OF_RANGE // before BigInt, which is slow on very long texts
  return BigInt(digits) * unit + fractionNanoseconds(fraction, unit)
}

/**
 * Go drops fraction digits that no longer fit into 63 bits and multiplies in floating point. Done the same way here, so
 * that a manifest means the same to the last nanosecond: "0.3333333333333333333h" is 20m.
 */
function fractionNanoseconds(fraction: string, unit: bigint): bigint {
  let value = 0n
  let scale = 1
  for (const digit of fraction) {
    const next = value * 10n + BigInt(digit)
    if (next > MAX_NS + 1n) break
    value = next
    scale *= 10
  }
  return BigInt(Math.trunc(Number(value) * (Number(unit) / scale)))
}

function formatNanoseconds(ns: bigint): string {
  if (ns === 0n) return '0s'
  if (ns < 1_000n) return `${ns}ns`
  if (ns < NS_PER_MS) return `${decimal(ns, 3)}\u00b5s`
  if (ns < 1_000_000_000n) return `${decimal(ns, 6)}ms`
  const minutes = ns / 60_000_000_000n
  const seconds = `${decimal(ns % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return seconds
  const hours = minutes / 60n
  return hours === 0n ? `${minutes}m${seconds}` : `${hours}h${minutes % 60n}m${seconds}`
}

/** `value` with its last `places` digits behind the point, without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${fraction}`
}

function shorten(text: string): string {
  return text.length <= 64 ? text : `${text.slice(0, 64)}…`
}
