import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HEADER_NAME_PATTERN, HEADER_VALUE_PATTERN, MANAGED_HEADERS } from './http-header.ts'

const isName = (text: string) => new RegExp(HEADER_NAME_PATTERN).test(text)
const isValue = (text: string) => new RegExp(HEADER_VALUE_PATTERN).test(text)

describe('names and values of headers', () => {
  it('are those that the platform itself takes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 8 }), (name) => {
        expect(isName(name)).toBe(accepts(() => new Headers([[name, 'v']])))
      }),
    )
  })

  it('let no control character into a value, but a tab', () => {
    const allowed = Array.from({ length: 256 }, (_, code) => code).filter((code) => isValue(`a${String.fromCharCode(code)}b`))
    expect(allowed).toEqual([9, ...range(32, 126), ...range(128, 255)])
  })

  it('compares with managed names in lower case', () => {
    for (const name of MANAGED_HEADERS) expect(name).toBe(name.toLowerCase())
    expect(new Set(MANAGED_HEADERS).size).toBe(MANAGED_HEADERS.length)
  })
})

function accepts(attempt: () => void): boolean {
  try {
    attempt()
    return true
  } catch (error) {
    if (error instanceof TypeError) return false
    throw error
  }
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}
