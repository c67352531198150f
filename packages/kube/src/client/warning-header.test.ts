import { describe, expect, it } from 'vitest'
import { parseWarnings } from './warning-header.ts'

describe('parseWarnings', () => {
  it.each<[string | string[] | undefined, string[]]>([
    [undefined, []],
    ['', []],
    ['299 - "unknown field \\"spec.x\\""', ['unknown field "spec.x"']],
    ['299 - "one", 299 - "two, with comma"', ['one', 'two, with comma']],
    [
      ['299 - "one"', '299 - "two"'],
      ['one', 'two'],
    ],
    ['garbage', []],
    ['299 - "never closed', []],
  ])('%j', (header, texts) => {
    expect(parseWarnings(header)).toEqual(texts)
  })
})
