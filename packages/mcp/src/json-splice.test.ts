import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { skipSpace } from './json-scan.ts'
import { findMember, findMembers, spliceMember } from './json-splice.ts'

const key = fc.oneof(fc.constantFrom('id', 'params', '_meta', '__proto__', ''), fc.string({ unit: 'binary', maxLength: 4 }))
const object = fc.dictionary(key, fc.oneof(fc.jsonValue(), fc.dictionary(key, fc.jsonValue())), { maxKeys: 5 })

function set(root: unknown, path: readonly string[], value: unknown): void {
  const at = path.slice(0, -1).reduce((o, name) => {
    const parent = o as Record<string, unknown>
    if (!Object.hasOwn(parent, name)) define(parent, name, {})
    return parent[name]
  }, root)
  const last = path.at(-1) ?? ''
  if (value === undefined) delete (at as Record<string, unknown>)[last]
  else define(at as Record<string, unknown>, last, value)
}

function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

describe('findMembers', () => {
  it('finds what one search for each name finds', () => {
    const names = fc.uniqueArray(key, { maxLength: 4 })
    fc.assert(
      fc.property(object, names, fc.constantFrom(undefined, 2, '\t'), (root, wanted, indent) => {
        const text = JSON.stringify(root, undefined, indent)
        expect(findMembers(text, skipSpace(text, 0), wanted)).toEqual(wanted.map((name) => findMember(text, [name])))
      }),
    )
  })

  it('takes the last of equal names, however they are written, and finds nothing in what is no object', () => {
    const text = '{"id":1,"x":{"id":5},"\\u0069d":3}'
    const [id] = findMembers(text, 0, ['id'])
    expect(text.slice(id?.start, id?.end)).toBe('3')
    expect(findMembers('[{"id":1}]', 0, ['id'])).toEqual([undefined])
  })
})

describe('spliceMember', () => {
  it('does to the text what an assignment does to the value', () => {
    fc.assert(
      fc.property(
        object,
        fc.array(key, { minLength: 1, maxLength: 3 }),
        fc.option(fc.jsonValue(), { nil: undefined }),
        fc.constantFrom(undefined, 2, '\t'),
        (root, path, value, indent) => {
          const text = JSON.stringify(root, undefined, indent)
          const expected = JSON.parse(text)
          let parent: unknown = expected
          for (const name of path.slice(0, -1)) {
            if (!isObject(parent)) break
            parent = Object.hasOwn(parent as object, name) ? (parent as Record<string, unknown>)[name] : {}
          }
          fc.pre(isObject(parent))
          const isThere = findMember(text, path) !== undefined
          if (value !== undefined || isThere) set(expected, path, value)
          const spliced = spliceMember(text, path, value === undefined ? undefined : JSON.stringify(value))
          expect(JSON.parse(spliced)).toEqual(JSON.parse(JSON.stringify(expected)))
        },
      ),
    )
  })

  it('changes nothing else: large numbers, spelling, order, white space', () => {
    const text = '{ "big" : 12345678901234567890 ,\n "id":1, "x": "\\u00e9\\/", "f": 1.0, "z": -0 }'
    expect(spliceMember(text, ['id'], '"new"')).toBe(
      '{ "big" : 12345678901234567890 ,\n "id":"new", "x": "\\u00e9\\/", "f": 1.0, "z": -0 }',
    )
    expect(spliceMember(text, ['p', 'q'], '1')).toBe(`{"p":{"q":1},${text.slice(1)}`)
    expect(spliceMember(text, ['id'], undefined)).toBe('{"big" : 12345678901234567890,"x": "\\u00e9\\/","f": 1.0,"z": -0}')
    expect(spliceMember(text, ['no', 'such'], undefined)).toBe(text)
    expect(spliceMember(' {} ', ['a'], '1')).toBe(' {"a":1} ')
  })

  it('finds keys that are written with escapes', () => {
    expect(spliceMember('{"\\u0069d":1,"a\\"b":2}', ['id'], '7')).toBe('{"\\u0069d":7,"a\\"b":2}')
    expect(spliceMember('{"\\u0069d":1,"a\\"b":2}', ['a"b'], '7')).toBe('{"\\u0069d":1,"a\\"b":7}')
  })

  it('takes the last of equal names, as the parser does, and removes all of them', () => {
    const text = '{"id":1,"x":0,"id":2,"\\u0069d":3}'
    expect(JSON.parse(spliceMember(text, ['id'], '9'))).toEqual({ x: 0, id: 9 })
    expect(spliceMember(text, ['id'], undefined)).toBe('{"x":0}')
    const many = `{"a":${'{"id":1},"a":'.repeat(20_000)}{"id":2}}`
    expect(spliceMember(many, ['a'], undefined)).toBe('{}')
  })

  it('is not led astray by the same name deeper down, or in a string', () => {
    const text = '{"a":{"id":1},"s":"\\"id\\":2","list":[{"id":3}],"id":4}'
    expect(spliceMember(text, ['id'], '5')).toBe(text.replace('"id":4', '"id":5'))
    expect(spliceMember(text, ['a', 'id'], '5')).toBe(text.replace('"id":1', '"id":5'))
  })

  it('refuses a way through what is not an object', () => {
    expect(() => spliceMember('{"a":[1]}', ['a', 'b'], '1')).toThrow(RangeError)
    expect(() => spliceMember('[]', ['a'], '1')).toThrow(RangeError)
    expect(spliceMember('{"a":[1]}', ['a', 'b'], undefined)).toBe('{"a":[1]}')
  })
})
