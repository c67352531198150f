import { jsonEqual } from '@thv/kernel/json'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { builtinSchema } from '../builtin/builtin-schema.ts'
import type { Json, JsonObject } from '../kind-schema.ts'
import { compare } from './compare.ts'
import { difference, type FieldSet, fromFieldsV1, intersection, isEmptySet, pathsOf, toFieldsV1, union } from './field-set.ts'
import { fieldSetOf } from './field-set-of.ts'
import { applyJsonPatch } from './json-patch.ts'
import { merge } from './merge.ts'
import { applyMergePatch } from './merge-patch.ts'
import { serverSideApply, type Writer } from './ownership.ts'
import { PatchError } from './patch-error.ts'

const configMap = builtinSchema('v1', 'ConfigMap')?.merge ?? { type: 'untyped' as const }
const service = builtinSchema('v1', 'Service')?.merge ?? { type: 'untyped' as const }
const data = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2', '3'), { maxKeys: 4 })
const map = (values: Record<string, string>): JsonObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: values })
const ports = fc.uniqueArray(fc.record({ port: fc.integer({ min: 1, max: 6 }), name: fc.constantFrom('a', 'b') }), {
  selector: ({ port }) => port,
  maxLength: 4,
})
const withPorts = (list: Json): JsonObject => ({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' }, spec: { ports: list } })
const writer = (manager: string): Writer & { force: boolean } => ({
  schema: configMap,
  manager,
  apiVersion: 'v1',
  now: '2026-01-01T00:00:00Z',
  force: true,
})

function applied(live: JsonObject | undefined, values: Record<string, string>, manager: string): JsonObject {
  const result = serverSideApply(live, map(values), writer(manager))
  if ('conflict' in result) throw new Error('forced, and yet a conflict')
  return result.object
}

describe('server-side apply', () => {
  it('leaves exactly the fields of the appliers, in any order of applies', () => {
    fc.assert(
      fc.property(data, data, data, (first, other, second) => {
        const live = applied(applied(applied(undefined, first, 'a'), other, 'b'), second, 'a')
        expect(jsonEqual(live['data'] ?? {}, { ...other, ...second })).toBe(true)
      }),
    )
  })

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(data, data, (first, other) => {
        const live = applied(applied(undefined, first, 'a'), other, 'b')
        const again = serverSideApply(live, map(other), { ...writer('b'), force: false, now: '2027-01-01T00:00:00Z' })
        expect(again).toEqual({ object: live, changed: false })
      }),
    )
  })

  it('meets a conflict exactly where another applier has another value', () => {
    fc.assert(
      fc.property(data, data, (first, other) => {
        const result = serverSideApply(applied(undefined, first, 'a'), map(other), { ...writer('b'), force: false })
        const differing = Object.keys(other).filter((key) => Object.hasOwn(first, key) && first[key] !== other[key])
        const fields = 'conflict' in result ? result.conflict.causes.map(({ field }) => field) : []
        expect(fields.toSorted()).toEqual(differing.map((key) => `.data.${key}`).toSorted())
      }),
    )
  })

  it('merges list maps by key: applying twice is applying once, and every applied item is there', () => {
    fc.assert(
      fc.property(ports, ports, (live, next) => {
        const merged = merge(withPorts(live), withPorts(next), service)
        expect(merge(merged, withPorts(next), service)).toEqual(merged)
        const list = ((merged['spec'] as JsonObject)['ports'] ?? []) as readonly JsonObject[]
        for (const port of next) expect(list).toContainEqual(port)
        expect(new Set(list.map(({ port }) => port)).size).toBe(list.length)
      }),
    )
  })

  it('finds no difference between an object and itself', () => {
    fc.assert(
      fc.property(ports, (list) => {
        const { added, modified, removed } = compare(withPorts(list), withPorts(list), service)
        expect([added, modified, removed].every(isEmptySet)).toBe(true)
      }),
    )
  })
})

describe('field sets', () => {
  const sets = ports.map((list) => fieldSetOf(withPorts(list), service))

  it('survive the wire', () => {
    fc.assert(
      fc.property(sets, (set) => {
        expect(paths(fromFieldsV1(toFieldsV1(set)))).toEqual(paths(set))
      }),
    )
  })

  it('obey the laws of sets', () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        expect(paths(union(difference(a, b), intersection(a, b)))).toEqual(paths(a))
        expect(paths(union(a, b))).toEqual(paths(union(b, a)))
        expect(isEmptySet(difference(a, union(a, b)))).toBe(true)
      }),
    )
  })

  function paths(set: FieldSet): string[] {
    return [...pathsOf(set)].map((path) => path.join(' ')).toSorted()
  }
})

describe('patches', () => {
  const json = fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), fc.jsonValue({ maxDepth: 2 })) as fc.Arbitrary<JsonObject>

  it('a merge patch applied twice is the patch applied once, and the object stays as it was', () => {
    fc.assert(
      fc.property(json, json, (object, patch) => {
        const before = JSON.stringify(object)
        const once = applyMergePatch(object, patch)
        expect(JSON.stringify(applyMergePatch(once, patch))).toBe(JSON.stringify(once))
        expect(JSON.stringify(object)).toBe(before)
      }),
    )
  })

  it('a JSON patch follows RFC 6902', () => {
    const object: JsonObject = { list: ['a', 'c'], 'a/b': { '~': 1 } }
    expect(applyJsonPatch(object, [{ op: 'add', path: '/list/1', value: 'b' }])).toMatchObject({ list: ['a', 'b', 'c'] })
    expect(applyJsonPatch(object, [{ op: 'add', path: '/list/-', value: 'd' }])).toMatchObject({ list: ['a', 'c', 'd'] })
    expect(applyJsonPatch(object, [{ op: 'replace', path: '/a~1b/~0', value: 2 }])).toMatchObject({ 'a/b': { '~': 2 } })
    expect(applyJsonPatch(object, [{ op: 'move', from: '/list/0', path: '/list/1' }])).toMatchObject({ list: ['c', 'a'] })
    for (const bad of ['/list/2', '/list/x', '/nope/x', 'list']) {
      expect(() => applyJsonPatch(object, [{ op: 'remove', path: bad }])).toThrow(PatchError)
    }
    expect(() => applyJsonPatch(object, [{ op: 'move', from: '/a~1b', path: '/a~1b/x' }])).toThrow(PatchError)
    expect(object).toEqual({ list: ['a', 'c'], 'a/b': { '~': 1 } })
    const named = applyJsonPatch(object, [{ op: 'add', path: '/__proto__', value: { polluted: true } }])
    expect(Object.keys(named)).toContain('__proto__')
    expect((named as { polluted?: boolean }).polluted).toBeUndefined()
    expect(() =>
      applyJsonPatch(
        object,
        Array.from({ length: 10_001 }, () => ({ op: 'test', path: '' })),
      ),
    ).toThrow(/maximum operations/)
  })
})
