import { Extension, Failure, isLong } from './value.ts'

/* Cedar's `datetime` and `duration`, both in milliseconds. */

const DAY = 86_400_000n

const failure = (fn: string, text: string) =>
  new Failure(`error while evaluating \`${fn}\` extension function: ${JSON.stringify(text)} is not a valid ${fn}`)

const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{3}))?(Z|[+-]\d{4}))?$/

export function parseDatetime(text: string): Extension | Failure {
  const match = DATE.exec(text)
  if (!match) return failure('datetime', text)
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, milli = 0] = match.slice(1, 8).map((part) => Number(part ?? 0))
  const zone = match[8] ?? 'Z'
  if (hour > 23 || minute > 59 || second > 59 || !isDate(year, month, day)) return failure('datetime', text)
  const offset = zoneOffset(zone)
  if (offset === undefined) return failure('datetime', text)
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  const clock = BigInt(hour * 3_600_000 + minute * 60_000 + second * 1_000 + milli)
  return new Extension('datetime', BigInt(date.getTime()) + clock - offset)
}

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1) return false
  const last = new Date(0)
  last.setUTCFullYear(year, month, 0)
  return day <= last.getUTCDate()
}

function zoneOffset(zone: string): bigint | undefined {
  if (zone === 'Z') return 0n
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(3, 5))]
  if (hours > 23 || minutes > 59) return undefined
  const milliseconds = BigInt(hours * 60 + minutes) * 60_000n
  return zone.startsWith('-') ? -milliseconds : milliseconds
}

const DURATION = /^(-?)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/
const UNITS = [DAY, 3_600_000n, 60_000n, 1_000n, 1n]

export function parseDuration(text: string): Extension | Failure {
  const match = DURATION.exec(text)
  const parts = match?.slice(2, 7) ?? []
  if (!match || parts.every((part) => part === undefined)) return failure('duration', text)
  const total = parts.reduce((sum, part, at) => sum + BigInt(part ?? 0) * (UNITS[at] ?? 0n), 0n)
  const signed = match[1] === '-' ? -total : total
  return isLong(signed) ? new Extension('duration', signed) : failure('duration', text)
}

export function offsetBy(time: Extension, by: Extension): Extension | Failure {
  const sum = time.number + by.number
  return isLong(sum) ? new Extension('datetime', sum) : overflow('offset')
}

export function durationSince(time: Extension, earlier: Extension): Extension | Failure {
  const difference = time.number - earlier.number
  return isLong(difference) ? new Extension('duration', difference) : overflow('durationSince')
}

export function toDate({ number }: Extension): Extension | Failure {
  const day = number - modulo(number, DAY)
  return isLong(day) ? new Extension('datetime', day) : overflow('toDate')
}

export function toTime({ number }: Extension): Extension {
  return new Extension('duration', modulo(number, DAY))
}

/** Rounded towards zero. */
export function inUnits({ number }: Extension, unit: bigint): bigint {
  return number / unit
}

function modulo(value: bigint, by: bigint): bigint {
  const rest = value % by
  return rest < 0n ? rest + by : rest
}

function overflow(fn: string): Failure {
  return new Failure(`error while evaluating \`${fn}\` extension function: the result overflows`)
}
