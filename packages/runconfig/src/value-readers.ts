import { isIP } from 'node:net'
import { tryParseDuration } from '@thv/kernel/duration'
import {
  type AnyFieldTable,
  type FieldTable,
  type Findings,
  isJsonObject,
  joinPath,
  kindOf,
  type ReadFieldsOptions,
  readFields,
  type ValueReader,
} from './field.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export interface TextRules {
  /** The required form of the text, and its description. */
  readonly like?: { readonly test: (text: string) => boolean; readonly words: string }
  readonly allowEmpty?: boolean
}

export function text(rules: TextRules = {}): ValueReader<string> {
  const { like, allowEmpty = false } = rules
  const expects = like?.words ?? (allowEmpty ? 'a text' : 'a text that is not empty')
  return plain(expects, (value) => {
    if (typeof value !== 'string' || value.includes('\0')) return undefined
    if (value === '') return allowEmpty ? value : undefined
    return like === undefined || like.test(value) ? value : undefined
  })
}

export const addressRange: ValueReader<string> = text({
  like: { test: isAddressRange, words: 'an IP address or a range such as 10.0.0.0/8' },
})

function isAddressRange(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

export const flag: ValueReader<boolean> = plain('true or false', (value) => (typeof value === 'boolean' ? value : undefined))

export function integer(range: { min: number; max?: number }): ValueReader<number> {
  const { min, max = Number.MAX_SAFE_INTEGER } = range
  const words = range.max === undefined ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`
  return plain(words, (value) => (Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined))
}

export function oneOf<const T extends string>(values: readonly T[], options: { anyCase?: boolean } = {}): ValueReader<T> {
  return plain(`one of ${values.join(', ')}`, (value) => {
    // All lower or all upper, as ToolHive (Go) does; a mixture is a mistake.
    const folded = options.anyCase && typeof value === 'string' && value === value.toUpperCase() ? value.toLowerCase() : value
    return values.find((known) => known === folded)
  })
}

/** Go syntax, kept as text. Zero and empty ask for the default. */
export function durationText(whenZero: string): ValueReader<string> {
  return plain('a duration that is not negative, such as 30s or 2h', (value) => {
    if (value === '') return whenZero
    const ms = typeof value === 'string' ? tryParseDuration(value) : undefined
    if (ms === undefined || ms < 0) return undefined
    return ms === 0 ? whenZero : String(value)
  })
}

export function httpUrl(): ValueReader<string> {
  return plain('an http or https URL without user name and password', (value) => {
    if (typeof value !== 'string' || !URL.canParse(value)) return undefined
    const url = new URL(value)
    const isPlain = url.username === '' && url.password === '' && url.hostname !== ''
    return isPlain && (url.protocol === 'http:' || url.protocol === 'https:') ? value : undefined
  })
}

export function listOf<T>(items: ValueReader<T>): ValueReader<readonly T[]> {
  const expects = `a list, each item ${items.expects}`
  return {
    expects,
    items,
    read(value, path, findings) {
      if (!Array.isArray(value)) return refuse(expects, value, { path, findings })
      const read = value.map((item, index) => items.read(item, `${path}[${index}]`, findings))
      const usable = read.filter((item) => item !== undefined)
      return usable.length === value.length ? usable : undefined
    },
  }
}

/** `keys` says what a key must look like; a key is named in problems, its value never. */
export function mapOf<T>(items: ValueReader<T>, keys: ValueReader<string> = text()): ValueReader<Readonly<Record<string, T>>> {
  const expects = `an object, each member ${items.expects}`
  return {
    expects,
    items,
    read(value, path, findings) {
      if (!isJsonObject(value)) return refuse(expects, value, { path, findings })
      const members: [string, T][] = []
      let isUsable = true
      for (const [key, item] of Object.entries(value)) {
        const memberPath = joinPath(path, key)
        const name = keys.read(key, `${memberPath} (its name)`, findings)
        const read = items.read(item, memberPath, findings)
        if (name === undefined || read === undefined) isUsable = false
        else members.push([name, read])
      }
      return isUsable ? Object.fromEntries(members) : undefined
    },
  }
}

export function objectOf<T>(table: FieldTable<T>, options: ReadFieldsOptions = {}): ValueReader<T> {
  return {
    expects: 'an object',
    fields: table as unknown as AnyFieldTable,
    read: (value, path, findings) => readFields(table, { value, path, findings }, options),
  }
}

/** An object whose members are read by its consumer. */
export const anyObject: ValueReader<JsonObject> = plain('an object', (value) => (isJsonObject(value) ? value : undefined))

/** ToolHive (Go) writes these as JSON inside a text; an object is the same thing and easier to write by hand. */
export const objectOrJsonText: ValueReader<JsonObject> = plain('an object, or a text that holds one as JSON', (value) => {
  if (isJsonObject(value)) return value
  if (typeof value !== 'string') return undefined
  try {
    const parsed: unknown = JSON.parse(value)
    return isJsonObject(parsed) ? parsed : undefined
  } catch {
    return undefined // reported as what was expected: the message of the parser would quote the text
  }
})

function plain<T>(expects: string, accept: (value: unknown) => T | undefined): ValueReader<T> {
  return { expects, read: (value, path, findings) => accept(value) ?? refuse(expects, value, { path, findings }) }
}

export function refuse(expects: string, value: unknown, at: { path: string; findings: Findings }): undefined {
  at.findings.problems.push({ path: at.path, message: `expects ${expects}, got ${kindOf(value)}` })
  return undefined
}
