import { RuleError } from './define.ts'

/** `'%s of %d'.format([a, b])`. */
export function formatText(pattern: string, args: readonly unknown[]): string {
  let next = 0
  return pattern.replace(
    /%(%|(?:\.(\d+))?([sdfexXob])|.?)/gs,
    (all, directive: string, precision: string | undefined, verb: string | undefined) => {
      if (directive === '%') return '%'
      if (verb === undefined) throw new RuleError(`could not parse formatting clause: unrecognized formatting clause "${all.slice(1)}"`)
      if (next >= args.length) throw new RuleError(`index ${next} out of range`)
      const value = args[next]
      next += 1
      return directiveText(verb, value, Number(precision ?? 6))
    },
  )
}

function directiveText(verb: string, value: unknown, precision: number): string {
  const number = typeof value === 'bigint' || typeof value === 'number' ? Number(value) : Number.NaN
  switch (verb) {
    case 's':
      return shown(value)
    case 'd':
      if (typeof value !== 'bigint') throw new RuleError('decimal clause can only be used on integers')
      return String(value)
    case 'f':
      return number.toFixed(precision)
    case 'e':
      return number.toExponential(precision).replace(/e([+-])(\d)$/, 'e$10$2')
    case 'x':
    case 'X': {
      const hex =
        typeof value === 'bigint'
          ? value.toString(16)
          : Buffer.from(typeof value === 'string' ? value : (value as Uint8Array)).toString('hex')
      return verb === 'X' ? hex.toUpperCase() : hex
    }
    case 'o':
      return BigInt(number).toString(8)
    default:
      return typeof value === 'boolean' ? (value ? '1' : '0') : BigInt(number).toString(2)
  }
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`
  if (value instanceof Map) {
    const members = [...value].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
    return `{${members.map(([key, member]) => `${shown(key)}: ${shown(member)}`).join(', ')}}`
  }
  if (value instanceof Date) return value.toISOString().replace('.000Z', 'Z')
  return String(value)
}
