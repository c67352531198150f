import { goQuote } from '../../values/go-text.ts'
import { type Library, RuleError } from './define.ts'
import { formatText } from './format-text.ts'

/* cel-go's string extension, version 2. It counts code points; JavaScript counts code units. */

/** The namespace of `strings.quote`. */
class CelStrings {}

export const strings: Library = {
  types: { 'kubernetes.Strings': CelStrings },
  constants: { strings: ['kubernetes.Strings', new CelStrings()] },
  functions: {
    'string.charAt(int): string': (text: string, at: bigint) => {
      const points = [...text]
      if (at < 0n || at > BigInt(points.length)) throw new RuleError(`index out of range: ${at}`)
      return points[Number(at)] ?? ''
    },
    'string.contains(string): bool': (text: string, part: string) => text.includes(part),
    'string.indexOf(string): int': (text: string, part: string) => indexOf(text, part, 0n),
    'string.indexOf(string, int): int': indexOf,
    'string.lastIndexOf(string): int': (text: string, part: string) => pointIndex(text, text.lastIndexOf(part)),
    'string.lastIndexOf(string, int): int': (text: string, part: string, from: bigint) => {
      const points = checkedPoints(text, from)
      return pointIndex(text, text.lastIndexOf(part, points.slice(0, Number(from)).join('').length))
    },
    'string.lowerAscii(): string': (text: string) => text.replace(/[A-Z]/g, (char) => char.toLowerCase()),
    'string.upperAscii(): string': (text: string) => text.replace(/[a-z]/g, (char) => char.toUpperCase()),
    'string.trim(): string': (text: string) => text.replace(/^[\s\u0085]+|[\s\u0085]+$/g, ''),
    'string.reverse(): string': (text: string) => [...text].reverse().join(''),
    'string.replace(string, string): string': (text: string, from: string, to: string) => text.replaceAll(from, () => to),
    'string.replace(string, string, int): string': (text: string, from: string, to: string, count: bigint) =>
      count < 0n ? text.replaceAll(from, () => to) : replaceSome(text, from, { to, count: Number(count) }),
    'string.split(string): list<string>': (text: string, by: string) => split(text, by),
    'string.split(string, int): list<string>': (text: string, by: string, count: bigint) => {
      const parts = split(text, by)
      if (count === 0n) return []
      const kept = Number(count)
      return count < 0n || parts.length <= kept ? parts : [...parts.slice(0, kept - 1), parts.slice(kept - 1).join(by)]
    },
    'string.substring(int): string': (text: string, from: bigint) => checkedPoints(text, from).slice(Number(from)).join(''),
    'string.substring(int, int): string': (text: string, from: bigint, to: bigint) => {
      const points = checkedPoints(text, from)
      if (to < from || to > BigInt(points.length)) throw new RuleError(`invalid substring range. start: ${from}, end: ${to}`)
      return points.slice(Number(from), Number(to)).join('')
    },
    'list<string>.join(): string': (parts: string[]) => parts.join(''),
    'list<string>.join(string): string': (parts: string[], by: string) => parts.join(by),
    'string.format(list): string': formatText,
    'kubernetes.Strings.quote(string): string': (_strings: CelStrings, text: string) => goQuote(text),
  },
}

function indexOf(text: string, part: string, from: bigint): bigint {
  const points = checkedPoints(text, from)
  return pointIndex(text, text.indexOf(part, points.slice(0, Number(from)).join('').length))
}

function pointIndex(text: string, unitIndex: number): bigint {
  return BigInt(unitIndex < 0 ? -1 : [...text.slice(0, unitIndex)].length)
}

function checkedPoints(text: string, from: bigint): string[] {
  const points = [...text]
  if (from < 0n || from > BigInt(points.length)) throw new RuleError(`index out of range: ${from}`)
  return points
}

function split(text: string, by: string): string[] {
  return by === '' ? [...text] : text.split(by)
}

function replaceSome(text: string, from: string, { to, count }: { to: string; count: number }): string {
  const parts = split(text, from)
  return (
    parts.slice(0, count + 1).join(to) +
    parts
      .slice(count + 1)
      .map((part) => from + part)
      .join('')
  )
}
