import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { covers } from './is-subset.ts'

describe('covers', () => {
  test.each<[string, unknown, unknown, boolean]>([
    ['equal values', { a: 1 }, { a: 1 }, true],
    ['another value', { a: 2 }, { a: 1 }, false],
    ['a member more in the live object', { a: 1, b: 2 }, { a: 1 }, true],
    ['a member less', { a: 1 }, { a: 1, b: 2 }, false],
    ['an empty object that the server drops', {}, { volumes: { emptyDir: {} }.emptyDir }, true],
    ['an object of nothing that the server drops', {}, { a: { b: {} } }, true],
    ['a false that the server keeps', {}, { a: false }, false],
    ['quantities in another spelling', { cpu: '1' }, { cpu: '1000m' }, true],
    ['a tenth in two spellings', { cpu: '100m' }, { cpu: '0.1' }, true],
    ['other quantities', { cpu: '1' }, { cpu: '1001m' }, false],
    ['binary and decimal thousands', { memory: '1k' }, { memory: '1Ki' }, false],
    ['exponents', { cpu: '1k' }, { cpu: '1e3' }, true],
    ['words that are no quantities', { a: 'x' }, { a: 'y' }, false],
    [
      'a list item found by its name',
      [
        { name: 'b', v: 1 },
        { name: 'a', v: 2 },
      ],
      [{ name: 'a', v: 2 }],
      true,
    ],
    ['a list item that was changed', [{ name: 'a', v: 1 }], [{ name: 'a', v: 2 }], false],
    ['a list item that is gone', [{ name: 'b' }], [{ name: 'a' }], false],
    [
      'mounts by path, also when one volume is mounted twice',
      [
        { name: 'v', mountPath: '/a' },
        { name: 'v', mountPath: '/b' },
      ],
      [{ name: 'v', mountPath: '/b' }],
      true,
    ],
    ['plain values in order', ['a', 'b'], ['a', 'b'], true],
    ['plain values of which one was added', ['a', 'b', 'c'], ['a', 'b'], false],
    ['rules by place', [{ verbs: ['get'] }], [{ verbs: ['get'] }], true],
    ['a rule more than wanted', [{ verbs: ['get'] }, { verbs: ['*'] }], [{ verbs: ['get'] }], false],
    ['a key more in a selector', { selector: { app: 'a', evil: 'b' } }, { selector: { app: 'a' } }, false],
    ['a subject more in a binding', { subjects: [{ name: 'a' }, { name: 'evil' }] }, { subjects: [{ name: 'a' }] }, false],
    [
      'a port more in a rule for traffic',
      { egress: [{ ports: [{ port: 443 }, { port: 22 }] }] },
      { egress: [{ ports: [{ port: 443 }] }] },
      false,
    ],
    ['a list where there should be none', [{ a: 1 }], { a: 1 }, false],
    ['nothing where a list should be', undefined, [], false],
  ])('%s', (_, live, wanted, expected) => {
    expect(covers(live, wanted)).toBe(expected)
  })

  test('an object covers itself, and still does with members added anywhere', () => {
    const plain = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.string(), fc.integer(), fc.boolean(), tie('object'), tie('list')),
      object: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'spec'), tie('value'), { maxKeys: 4 }),
      list: fc.array(fc.string(), { maxLength: 3 }),
    })).object
    const added = (value: unknown): unknown =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? { ...Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, added(inner)])), zz: 'added' }
        : value
    fc.assert(fc.property(plain, (object) => void expect([covers(object, object), covers(added(object), object)]).toEqual([true, true])))
  })
})
