import { expect, it } from 'vitest'
import { isJsonObject, member } from './json-guard.ts'
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
