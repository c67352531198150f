import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jsonEqual } from '@thv/kernel/json'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toolArguments } from './tool-arguments.ts'

const SCHEMA = {
  type: 'object',
  $defs: { level: { enum: ['low', 'high'] } },
  properties: {
    text: { type: 'string' },
    count: { type: 'integer' },
    ratio: { type: 'number' },
    dry: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' } },
    sizes: { type: 'array', items: { type: 'integer' } },
    where: { type: 'object' },
    level: { $ref: '#/$defs/level' },
    maybe: { type: ['integer', 'null'] },
    either: { anyOf: [{ type: 'number' }, { type: 'string' }] },
    any: {},
    loop: { $ref: '#/properties/loop' },
  },
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-cli-'))
  writeFileSync(join(folder, 'text.txt'), 'two\nlines ü')
  writeFileSync(join(folder, 'where.json'), '{"a": [1]}')
  writeFileSync(join(folder, 'latin1.txt'), Buffer.from([0xe4]))
})
afterAll(() => rmSync(folder, { recursive: true }))

const read = (...words: string[]) => toolArguments(words, { tool: 'demo', inputSchema: SCHEMA, cwd: folder })

describe('toolArguments', () => {
  it.each([
    [['text=5'], { text: '5' }],
    [['text='], { text: '' }],
    [['text=a=b:=c'], { text: 'a=b:=c' }],
    [['count=-5', 'ratio=1e-3', 'dry=false'], { count: -5, ratio: 0.001, dry: false }],
    [['ratio=.5'], { ratio: 0.5 }],
    [['tags=a', 'tags=b,c'], { tags: ['a', 'b,c'] }],
    [['tags=["a","b"]'], { tags: ['a', 'b'] }],
    [['sizes=1', 'sizes=2'], { sizes: [1, 2] }],
    [['where={"a":1}'], { where: { a: 1 } }],
    [['level=high'], { level: 'high' }],
    [['maybe=null'], { maybe: null }],
    [['maybe=7'], { maybe: 7 }],
    [['either=7'], { either: 7 }],
    [['either=7 apples'], { either: '7 apples' }],
    [['any=true'], { any: true }],
    [['any=true story'], { any: 'true story' }],
    [['loop=1'], { loop: 1 }],
    [['text:=5'], { text: 5 }],
    [['unknown:={"x":null}'], { unknown: { x: null } }],
    [['text=@text.txt'], { text: 'two\nlines ü' }],
    [['where=@where.json'], { where: { a: [1] } }],
    [['where:=@where.json'], { where: { a: [1] } }],
    [['@where.json', 'text=x'], { a: [1], text: 'x' }],
    [[], {}],
  ])('%j: %j', (words, expected) => {
    expect(read(...words)).toEqual(expected)
  })

  it.each([
    [['text'], /"text" is no argument: write name=value/],
    [['=x'], /is no argument/],
    [[':=x'], /is no argument/],
    [['count=1.5'], /argument "count" of demo must be an integer/],
    [['count=99999999999999999999'], /must be an integer/],
    [['ratio=abc'], /must be a number/],
    [['ratio=Infinity'], /must be a number/],
    [['dry=yes'], /must be true or false/],
    [['where=[1]'], /must be a JSON object/],
    [['tags=[oops'], /must be a JSON array/],
    [['sizes=x'], /argument "sizes" of demo must be an integer/],
    [['level=medium'], /must be one of "low", "high"/],
    [['maybe=x'], /must be an integer or null/],
    [['text:=oops'], /argument "text" is not JSON/],
    [['text=a', 'text=b'], /was given before/],
    [['txet=a'], /demo has no argument "txet": it takes text, .* Did you mean "text"\?/],
    [['text=@missing.txt'], /missing\.txt cannot be read: there is no such file/],
    [['text=@latin1.txt'], /not text in UTF-8/],
    [['@text.txt'], /text\.txt is not JSON/],
  ])('refuses %j', (words, message) => {
    expect(() => read(...words)).toThrow(expect.objectContaining({ code: 'usage', message: expect.stringMatching(message) }))
  })

  it('names what is missing, with its type', () => {
    const inputSchema = { ...SCHEMA, required: ['text', 'level', 'tags'] }
    const missing = (words: string[]) => () => toolArguments(words, { tool: 'demo', inputSchema, cwd: folder })
    expect(missing(['count=1'])).toThrow('demo needs arguments that are missing: text=string level="low"|"high" tags=string[]')
    expect(missing(['text=x', 'level=low'])).toThrow('demo needs an argument that is missing: tags=string[]')
    expect(missing(['text=x', 'level=low', 'tags=[]'])()).toEqual({ text: 'x', level: 'low', tags: [] })
  })

  it('takes any name where the schema does, and none where it says so', () => {
    const options = { tool: 'demo', cwd: folder }
    expect(toolArguments(['x=1'], { ...options, inputSchema: undefined })).toEqual({ x: 1 })
    expect(toolArguments(['x=1'], { ...options, inputSchema: { type: 'object', additionalProperties: { type: 'string' } } })).toEqual({
      x: '1',
    })
    expect(toolArguments(['x=1'], { ...options, inputSchema: { properties: { a: {} }, additionalProperties: true } })).toEqual({ x: 1 })
    expect(() => toolArguments(['x=1'], { ...options, inputSchema: { additionalProperties: false } })).toThrow(/it takes none/)
  })

  it('hands every text on unchanged, and every JSON value', () => {
    const plain = fc.string().filter((text) => !text.startsWith('@'))
    fc.assert(fc.property(plain, (text) => void expect(read(`text=${text}`)['text']).toBe(text)))
    fc.assert(
      fc.property(
        fc.jsonValue(),
        (value) => void expect(jsonEqual(read(`any:=${JSON.stringify(value)}`)['any'], JSON.parse(JSON.stringify(value)))).toBe(true),
      ),
    )
    fc.assert(fc.property(fc.maxSafeInteger(), (count) => void expect(read(`count=${count}`)['count']).toBe(count)))
  })
})
