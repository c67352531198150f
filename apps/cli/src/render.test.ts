import { describe, expect, it } from 'vitest'
import { createProgressLine } from './progress-line.ts'
import { renderResult } from './render-result.ts'
import { renderTools } from './render-tools.ts'

describe('renderTools', () => {
  it('is a table with first sentences and arguments', () => {
    const text = renderTools([
      {
        name: 'add',
        title: 'Adder',
        description: 'Adds two numbers. Both may be negative.',
        inputSchema: {
          properties: { a: { type: 'number' }, mode: { enum: ['x', 'y'] }, list: { type: 'array', items: { type: 'integer' } } },
          required: ['a'],
        },
      },
      { name: 'größer', annotations: { title: 'Compare' }, inputSchema: {} },
      { name: 'same', title: 'Greets', description: 'Greets by name' },
    ])
    expect(text).toBe(
      [
        'NAME    DESCRIPTION               ARGUMENTS',
        'add     Adder: Adds two numbers.  a=number [mode="x"|"y"] [list=integer[]]',
        'größer  Compare',
        'same    Greets by name',
        '',
      ].join('\n'),
    )
  })

  it('lets no server steer the terminal', () => {
    const text = renderTools([{ name: 'x\x1b[2J', description: 'a\nb\x07\u202e' }])
    expect(text).toContain('x [2J  a b')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\u202e]/)
  })
})

describe('renderResult', () => {
  it.each([
    [
      'text as it is',
      {
        content: [
          { type: 'text', text: 'one\n  two' },
          { type: 'text', text: 'three\n' },
        ],
      },
      'one\n  two\nthree\n',
    ],
    ['structured content', { content: [], structuredContent: { a: 1 } }, '{\n  "a": 1\n}\n'],
    ['structured content that is no object', { content: [], structuredContent: 0 }, '0\n'],
    ['structured content once', { content: [{ type: 'text', text: '{ "a" :1}' }], structuredContent: { a: 1 } }, '{\n  "a": 1\n}\n'],
    ['both where they differ', { content: [{ type: 'text', text: 'one' }], structuredContent: 1 }, 'one\n1\n'],
    ['a picture', { content: [{ type: 'image', mimeType: 'image/png', data: 'AAAA' }] }, '[image image/png 3 B]\n'],
    ['sound', { content: [{ type: 'audio', mimeType: 'audio/wav', data: 'A'.repeat(4_000) }] }, '[audio audio/wav 3.0 kB]\n'],
    [
      'a resource',
      { content: [{ type: 'resource', resource: { uri: 'a://b', mimeType: 'text/plain', text: 'ü' } }] },
      '[resource a://b text/plain 2 B]\n',
    ],
    [
      'a large resource',
      { content: [{ type: 'resource', resource: { uri: 'a://b', blob: 'A'.repeat(4_000_000) } }] },
      '[resource a://b 3.0 MB]\n',
    ],
    ['a link', { content: [{ type: 'resource_link', name: 'n', uri: 'a://b' }] }, '[link n a://b]\n'],
    ['what is new', { content: [{ type: 'hologram' }, 7] }, '[unknown content hologram]\n[unknown content]\n'],
    ['nothing', {}, ''],
  ])('%s', (_title, result, expected) => {
    expect(renderResult(result)).toBe(expected)
  })
})

describe('createProgressLine', () => {
  it('writes over itself, and leaves nothing', () => {
    let text = ''
    const line = createProgressLine({ err: (more) => (text += more) })
    line.clear()
    expect(text).toBe('')
    line.show({ progress: 5, total: 20, message: 'half\nway' })
    line.show({ progress: 7 })
    line.clear()
    expect(text).toBe('\r\x1b[K25 % half way\r\x1b[K7\r\x1b[K')
  })
})
