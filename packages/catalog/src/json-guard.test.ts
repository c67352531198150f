import { expect, it } from 'vitest'
import { defaultJsonLimits, guardJson, isJsonObject, member } from './json-guard.ts'
import { createProblems } from './problems.ts'
import { serverExtensions } from './server-extensions.ts'

it('finds no member that the object does not have itself', () => {
  expect([member({}, 'constructor'), member({}, '__proto__'), member({}, 'toString')]).toEqual([undefined, undefined, undefined])
  expect(member(JSON.parse('{"__proto__":1}'), '__proto__')).toBe(1)
})

it('finds the extensions of an image whose name is a trap', () => {
  const block = { 'a:1': { status: 'active' } }
  const document = { _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { 'io.github.stacklok': block } } }
  expect(serverExtensions(document, '__proto__')).toBe(block['a:1'])
})

it('tells objects from what else is of that type', () => {
  expect([{}, [], null, 'x', 1, undefined].map(isJsonObject)).toEqual([true, false, false, false, false, false])
})

it('says where the first breach is', () => {
  const problemOf = (value: unknown) => {
    const problems = createProblems()
    expect(guardJson(value, problems, { ...defaultJsonLimits, maxString: 3, maxName: 5, maxValues: 9 })).toBe(false)
    return problems.list
  }
  expect(problemOf('long')).toEqual([{ pointer: '', message: 'is longer than 3 characters' }])
  expect(problemOf({ a: ['b', { 'c/~': 'long' }] })).toEqual([{ pointer: '/a/1/c~1~0', message: 'is longer than 3 characters' }])
  expect(problemOf({ a: [1, undefined] })).toEqual([{ pointer: '/a/1', message: 'is not JSON' }])
  expect(problemOf([{ longer: 1 }])).toEqual([{ pointer: '/0', message: 'has a member name longer than 5 characters' }])
  expect(problemOf([[1, 2, 3, 4, 5, 6, 7, 8]])).toEqual([{ pointer: '/0', message: 'makes more than 9 values' }])
})
