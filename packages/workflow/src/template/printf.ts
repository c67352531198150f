import { exponentText, fixedText, generalText } from './decimal.ts'
import { isPrintable, quoted } from './escapes.ts'
import { type Budget, TEMPLATE_LIMITS, tooMuch } from './limits.ts'
import { TemplateError } from './template-error.ts'
import { isNothing, kindOf, textOf, type Value } from './value.ts'

/** One `%…` of a format. */
interface Directive {
  readonly flags: string
  width: number | undefined
  precision: number | undefined
  leftAligned: boolean
  readonly verb: string
}

export interface PrintContext {
  readonly budget: Budget
  readonly at: number
}

const DIRECTIVE = /%([#0+\- ]*)(?:\[([0-9]+)\])?(\*|[0-9]*)(?:(\.)(?:\[([0-9]+)\])?(\*|[0-9]*))?(?:\[([0-9]+)\])?([\s\S]?)/gu

/** Go's Sprintf. A format that does not fit its arguments fails; Go would write `%!d(string=x)` into the text. */
export function sprintf(format: string, values: readonly Value[], context: PrintContext): string {
  const { budget, at } = context
  let next = 0
  let isReordered = false
  let out = ''
  let last = 0
  for (const found of format.matchAll(DIRECTIVE)) {
    const [text, flags = '', before, width = '', point, middle, precision = '', after, verb = ''] = found
    put(format.slice(last, found.index))
    last = found.index + text.length
    if (verb === '') throw bad('the format ends after %')
    jump(before)
    const directive: Directive = { flags, verb, width: undefined, precision: undefined, leftAligned: flags.includes('-') }
    directive.width = width === '*' ? wholeArgument() : width === '' ? undefined : Number(width)
    if (directive.width !== undefined && directive.width < 0) {
      directive.width = -directive.width
      directive.leftAligned = true
    }
    jump(middle)
    if (point) directive.precision = precision === '*' ? wholeArgument() : Number(precision)
    if (directive.precision !== undefined && directive.precision < 0) throw bad('the precision is negative')
    bound(directive, at)
    jump(after)
    if (verb === '%') put('%')
    else put(formatted(argument(), directive, context))
  }
  put(format.slice(last))
  if (!isReordered && next < values.length) throw bad(`the format uses ${next} of ${values.length} values`)
  return out

  function put(text: string): void {
    out += budget.make(text, at)
  }

  function jump(index: string | undefined): void {
    if (index === undefined) return
    isReordered = true
    next = Number(index) - 1
    if (next < 0 || next >= values.length) throw bad(`there is no value ${index}`)
  }

  function argument(): Value {
    if (next >= values.length) throw bad('there are fewer values than the format needs')
    return values[next++]
  }

  function wholeArgument(): number {
    const value = argument()
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw bad(`* needs a whole number, not ${kindOf(value)}`)
    return value
  }

  function bad(message: string): TemplateError {
    return new TemplateError('type', `printf: ${message}`, at)
  }
}

/** At load: widths that stand in a constant format. */
export function checkConstantFormat(format: unknown, at: number): void {
  if (typeof format !== 'string') throw new TemplateError('type', 'the format of printf must be a string', at)
  for (const [, , , width = '', , , precision = ''] of format.matchAll(DIRECTIVE)) {
    bound({ width: width === '*' ? 0 : Number(width), precision: precision === '*' ? 0 : Number(precision) }, at)
  }
}

function bound({ width = 0, precision = 0 }: { width: number | undefined; precision: number | undefined }, at: number): void {
  if (width > TEMPLATE_LIMITS.printfWidth || precision > TEMPLATE_LIMITS.printfWidth) {
    throw tooMuch(`a width or precision of printf over ${TEMPLATE_LIMITS.printfWidth.toLocaleString('en-US')}`, at)
  }
}

function formatted(value: Value, directive: Directive, context: PrintContext): string {
  if (isNothing(value)) throw new TemplateError('no_value', 'printf: a value is missing', context.at)
  if (typeof value === 'number') return numeric(value, directive, context)
  const { verb } = directive
  if (typeof value === 'boolean') return verb === 't' || verb === 'v' ? padded(String(value), directive) : mismatch(value, verb, context)
  const text = textOf(value, context.budget, context.at)
  if (typeof value !== 'string') return verb === 'v' || verb === 's' ? padded(text, directive) : mismatch(value, verb, context)
  return ofText(text, directive, context)
}

function ofText(text: string, directive: Directive, context: PrintContext): string {
  const { verb, precision, flags } = directive
  if (verb === 'x' || verb === 'X') return padded(hexBytes(text, directive), directive)
  const cut = precision === undefined ? text : [...text].slice(0, precision).join('')
  if (verb === 's' || verb === 'v') return padded(verb === 'v' && flags.includes('#') ? quoted(cut, '"', false) : cut, directive)
  if (verb !== 'q') return mismatch(text, verb, context)
  if (flags.includes('#') && !/[`\uFEFF\x7F]|[^\P{Cc}\t]/u.test(cut)) return padded(`\`${cut}\``, directive)
  return padded(quoted(cut, '"', flags.includes('+')), directive)
}

function hexBytes(text: string, { flags, precision, verb }: Directive): string {
  const bytes = Buffer.from(text).subarray(0, precision)
  const prefix = flags.includes('#') && bytes.length > 0 ? '0x' : ''
  const hex = flags.includes(' ')
    ? [...bytes].map((byte) => prefix + byte.toString(16).padStart(2, '0')).join(' ')
    : prefix + bytes.toString('hex')
  return verb === 'X' ? hex.toUpperCase() : hex
}

const BASES: Readonly<Record<string, readonly [base: number, prefix: string]>> = {
  d: [10, ''],
  b: [2, '0b'],
  o: [8, '0'],
  O: [8, ''],
  x: [16, '0x'],
  X: [16, '0X'],
}

function numeric(value: number, directive: Directive, context: PrintContext): string {
  const { verb, precision, flags } = directive
  const isWhole = Number.isSafeInteger(value)
  if (verb === 'v') return signed(value, String(Math.abs(value)), { ...directive, flags: flags.replaceAll('+', '') })
  const base = BASES[verb]
  if (base) return isWhole ? whole(value, base, directive) : mismatch(value, verb, context)
  if (verb === 'c' && isWhole) return padded(character(value), directive)
  if (verb === 'q' && isWhole) return padded(quoted(character(value), "'", flags.includes('+')), directive)
  if (verb === 'U' && isWhole && value >= 0) return padded(codePoint(value, directive), { ...directive, flags: flags.replaceAll('0', '') })
  if (flags.includes('#') || !/^[eEfFgG]$/.test(verb)) return mismatch(value, verb, context)
  const absolute = Math.abs(value)
  const lower = verb.toLowerCase()
  const text =
    lower === 'e'
      ? exponentText(absolute, precision ?? 6)
      : lower === 'f'
        ? fixedText(absolute, precision ?? 6)
        : generalText(absolute, precision)
  return signed(value, verb === 'E' || verb === 'G' ? text.toUpperCase() : text, directive)
}

/** A sign, zeros to the width behind it, and the digits. */
function signed(value: number, text: string, directive: Directive): string {
  const sign = signOf(value, directive)
  const zeros = directive.flags.includes('0') && !directive.leftAligned ? (directive.width ?? 0) - sign.length - text.length : 0
  return padded(`${sign}${'0'.repeat(Math.max(0, zeros))}${text}`, { ...directive, flags: '' })
}

function signOf(value: number, { flags }: Directive): string {
  if (value < 0 || Object.is(value, -0)) return '-'
  return flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
}

function whole(value: number, [base, prefix]: readonly [number, string], directive: Directive): string {
  const { verb, precision, flags, width } = directive
  const spaces = { ...directive, flags: flags.replaceAll('0', '') }
  if (precision === 0 && value === 0) return padded('', spaces)
  const sign = signOf(Object.is(value, -0) ? 0 : value, directive)
  const zeros = precision ?? (flags.includes('0') && !directive.leftAligned && width !== undefined ? width - sign.length : 0)
  const raw = Math.abs(value).toString(base).padStart(zeros, '0')
  const digits = verb === 'X' ? raw.toUpperCase() : raw
  const marked = flags.includes('#') && !(base === 8 && digits.startsWith('0')) ? prefix : ''
  return padded(`${sign}${verb === 'O' ? '0o' : ''}${marked}${digits}`, spaces)
}

function character(point: number): string {
  return point >= 0 && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff) ? String.fromCodePoint(point) : '\uFFFD'
}

function codePoint(value: number, { precision, flags }: Directive): string {
  const text = `U+${value
    .toString(16)
    .toUpperCase()
    .padStart(Math.max(4, precision ?? 4), '0')}`
  return flags.includes('#') && value <= 0x10ffff && isPrintable(character(value)) ? `${text} '${character(value)}'` : text
}

function padded(text: string, { width, leftAligned, flags }: Directive): string {
  if (width === undefined) return text
  const missing = width - [...text].length
  if (missing <= 0) return text
  if (leftAligned) return text + ' '.repeat(missing)
  return (flags.includes('0') ? '0' : ' ').repeat(missing) + text
}

function mismatch(value: Value, verb: string, { at }: PrintContext): never {
  throw new TemplateError('type', `printf: %${verb} cannot print ${kindOf(value)}`, at)
}
