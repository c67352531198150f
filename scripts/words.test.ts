import { describe, expect, it } from 'vitest'
import { findingsIn, judgeWords } from './words.ts'

describe('findingsIn', () => {
  it.each([
    ['// Ends the stream (H8, H10).', '(H8, H10)'],
    ['// See decision 90.', 'decision 90'],
    ['/** The modern ladder. */', 'modern ladder'],
    ['// It is built anew.', 'anew'],
    ['// It waits for ever.', 'for ever'],
    ['how a server is had', 'is had'],
    ['it belongs into the spec', 'belongs into'],
    ['clients are told', 'are told'],
    ['as the original does', 'the original'],
    ['Whoever asks gets it', 'Whoever'],
    ['nobody reads it', 'nobody'],
    ['/** What the server sends. */', '/** What'],
    ["  it('what is missing stays', () => {", "it('what"],
  ])('%s: finds %s', (text, phrase) => {
    expect(findingsIn(text).map((finding) => finding.phrase)).toContain(phrase)
  })

  it.each([
    '// Ends the stream (MCP 2025-11-25, Streamable HTTP).',
    '// See docs/adr/0013.',
    'a decision record',
    'const original = value',
    'f(A1, B2)',
    '## What it does',
  ])('%s: finds nothing', (text) => expect(findingsIn(text)).toEqual([]))

  it('names the line', () => expect(findingsIn('a\nb\nanew')).toMatchObject([{ line: 3, phrase: 'anew' }]))
})

describe('judgeWords', () => {
  const found = new Map([['a.ts', findingsIn('anew\nanew')]])
  it('passes a file with no more than is allowed', () => {
    expect(judgeWords(found, { 'a.ts': 2 })).toEqual([])
    expect(judgeWords(found, { 'a.ts': 3 })).toEqual([])
  })

  it('names what came back, where, and what to write instead', () => {
    const problems = judgeWords(found, { 'a.ts': 1, 'b.ts': 9 })
    expect(problems[0]).toBe('a.ts has 2 phrases to rewrite, 1 are allowed (scripts/words-allowed.json):')
    expect(problems[1]).toBe('  a.ts:1: "anew": write "again", "new" or name what is replaced')
    expect(problems.at(-1)).toContain('node scripts/words.ts --update')
  })
})
