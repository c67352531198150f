import { CedarRecord, CedarSet, Extension, isLong, type Value } from '../evaluator/value.ts'

/** Levels of claims that become values; what lies deeper is left out. */
const MAX_DEPTH = 10

/** A value of a token or a call as a value of Cedar. Undefined: Cedar has none for it. Members and items without one are left out. */
export function factOf(json: unknown, depth = 0): Value | undefined {
  switch (typeof json) {
    case 'string':
    case 'boolean':
      return json
    case 'number':
      return numberOf(json)
    case 'object':
      if (json === null || depth >= MAX_DEPTH) return undefined
      return Array.isArray(json) ? setOf(json, depth + 1) : recordOf(json, depth + 1)
    default:
      return undefined
  }
}

/** A whole number becomes a Long, any other one with up to four digits behind the point a decimal. A number that JSON rounded becomes nothing. */
export function numberOf(number: number): bigint | Extension | undefined {
  if (Number.isInteger(number)) return Number.isSafeInteger(number) ? BigInt(number) : undefined
  const match = /^(-?\d+)\.(\d{1,4})$/.exec(String(number))
  if (match === null) return undefined
  const steps = BigInt(`${match[1]}${(match[2] ?? '').padEnd(4, '0')}`)
  return isLong(steps) ? new Extension('decimal', steps) : undefined
}

function setOf(items: readonly unknown[], depth: number): CedarSet {
  return new CedarSet(items.map((item) => factOf(item, depth)).filter((value) => value !== undefined))
}

function recordOf(json: object, depth: number): CedarRecord {
  const members = new Map<string, Value>()
  for (const [name, member] of Object.entries(json)) {
    const value = factOf(member, depth)
    if (value !== undefined) members.set(name, value)
  }
  return new CedarRecord(members)
}
