import { GoRegexpError, goRegexp } from '../../values/go-regexp.ts'
import { type Library, RuleError } from './define.ts'

export const regex: Library = {
  functions: {
    'string.matches(string): bool': (text: string, pattern: string) => regexpOf(pattern).test(text),
    'matches(string, string): bool': (text: string, pattern: string) => regexpOf(pattern).test(text),
    'string.find(string): string': (text: string, pattern: string) => regexpOf(pattern).exec(text)?.[0] ?? '',
    'string.findAll(string): list<string>': (text: string, pattern: string) => findAll(text, pattern, -1n),
    'string.findAll(string, int): list<string>': findAll,
  },
}

function findAll(text: string, pattern: string, count: bigint): string[] {
  const { source, flags } = regexpOf(pattern)
  const found = [...text.matchAll(new RegExp(source, `${flags}g`))].map(([match]) => match)
  return count < 0n ? found : found.slice(0, Number(count))
}

function regexpOf(pattern: string): RegExp {
  try {
    return goRegexp(pattern)
  } catch (error) {
    if (error instanceof GoRegexpError) throw new RuleError(error.message)
    throw error
  }
}
