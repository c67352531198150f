import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../objects/types.ts'
import { metadataOnly, ObjectStore, withoutManagedFields } from './store.ts'

interface Item extends KubeObject {
  refs?: string[]
}

const item = (name: string, extra: Partial<KubeObject['metadata']> = {}, refs: string[] = []): Item => ({
  metadata: { name, ...extra },
  refs,
})
const names = (items: readonly KubeObject[]) => items.map(({ metadata }) => metadata.name).sort()

describe('ObjectStore', () => {
  test('keeps one object per namespace and name', () => {
    const store = new ObjectStore<Item>()
    expect(store.set(item('a', { namespace: 'x' }))).toBeUndefined()
    store.set(item('a', { namespace: 'y' }))
    store.set(item('a'))
    expect(store.size).toBe(3)
    expect(store.set(item('a', { namespace: 'x', uid: '2' }))?.metadata.uid).toBeUndefined()
    expect(store.size).toBe(3)
    expect(store.get({ namespace: 'x', name: 'a' })?.metadata.uid).toBe('2')
    expect(store.get({ name: 'a' })?.metadata.namespace).toBeUndefined()
    expect(store.get({ namespace: 'z', name: 'a' })).toBeUndefined()
    expect(store.delete({ namespace: 'x', name: 'a' })?.metadata.uid).toBe('2')
    expect(store.delete({ namespace: 'x', name: 'a' })).toBeUndefined()
    expect(store.size).toBe(2)
  })

  test('lists by namespace and by labels', () => {
    const store = new ObjectStore<Item>()
    store.set(item('a', { namespace: 'x', labels: { app: 'web' } }))
    store.set(item('b', { namespace: 'x', labels: { app: 'db' } }))
    store.set(item('c', { namespace: 'y', labels: { app: 'web' } }))
    store.set(item('d', { namespace: 'y' }))
    expect(names(store.list())).toEqual(['a', 'b', 'c', 'd'])
    expect(names(store.list({ namespace: 'x' }))).toEqual(['a', 'b'])
    expect(names(store.list({ namespace: 'none' }))).toEqual([])
    expect(names(store.list({ labelSelector: 'app=web' }))).toEqual(['a', 'c'])
    expect(names(store.list({ labelSelector: { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] } }))).toEqual(['d'])
    expect(names(store.list({ namespace: 'y', labelSelector: 'app' }))).toEqual(['c'])
  })

  test('indexes follow every change, and take in what is there when they are added', () => {
    const store = new ObjectStore<Item>()
    store.set(item('a', {}, ['r1', 'r2']))
    store.addIndex('refs', ({ refs = [] }) => refs)
    store.set(item('b', {}, ['r2', 'r2']))
    expect(names(store.byIndex('refs', 'r2'))).toEqual(['a', 'b'])
    store.set(item('a', {}, ['r3']))
    expect(names(store.byIndex('refs', 'r1'))).toEqual([])
    expect(names(store.byIndex('refs', 'r2'))).toEqual(['b'])
    store.delete({ name: 'b' })
    expect(store.byIndex('refs', 'r2')).toEqual([])
    expect(names(store.byIndex('refs', 'r3'))).toEqual(['a'])
    expect(() => store.byIndex('reffs', 'r1')).toThrow('"reffs"')
    expect(() => store.addIndex('refs', () => [])).toThrow('exists already')
  })

  test('an index function that throws is reported, and the object is in the store all the same', () => {
    const errors: unknown[] = []
    const store = new ObjectStore<Item>({ onError: (error) => errors.push(error) })
    store.addIndex('bad', ({ metadata }) => {
      if (metadata.name === 'odd') throw new Error('no')
      return ['all']
    })
    store.set(item('odd'))
    store.set(item('even'))
    store.set(item('odd', { uid: '2' }))
    store.delete({ name: 'odd' })
    expect(names(store.byIndex('bad', 'all'))).toEqual(['even'])
    expect(errors).toHaveLength(2)
    const strict = new ObjectStore<Item>()
    strict.addIndex('bad', () => {
      throw new Error('no')
    })
    expect(() => strict.set(item('a'))).toThrow('no')
    expect(strict.size).toBe(0)
  })

  test('property: equal to a plain map with filters', () => {
    const operation = fc.record({
      remove: fc.boolean(),
      namespace: fc.constantFrom(undefined, 'x', 'y'),
      name: fc.constantFrom('a', 'b', 'c'),
      refs: fc.array(fc.constantFrom('1', '2', '3'), { maxLength: 3 }),
    })
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), (operations) => {
        const store = new ObjectStore<Item>()
        store.addIndex('refs', ({ refs = [] }) => refs)
        const model = new Map<string, Item>()
        for (const { remove, namespace, name, refs } of operations) {
          const key = namespace === undefined ? { name } : { namespace, name }
          const id = `${namespace}/${name}`
          if (remove) {
            expect(store.delete(key)).toBe(model.get(id))
            model.delete(id)
          } else {
            const object = item(name, namespace === undefined ? {} : { namespace }, refs)
            expect(store.set(object)).toBe(model.get(id))
            model.set(id, object)
          }
        }
        expect(new Set(store.list())).toEqual(new Set(model.values()))
        expect(store.size).toBe(model.size)
        for (const ref of ['1', '2', '3']) {
          expect(new Set(store.byIndex('refs', ref))).toEqual(new Set([...model.values()].filter(({ refs }) => refs?.includes(ref))))
        }
      }),
    )
  })
})

describe('transforms', () => {
  const object = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'a',
      uid: 'u',
      resourceVersion: '7',
      labels: { l: '1' },
      annotations: { keep: 'this', 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"password":"c2VjcmV0"}}' },
      managedFields: [{}],
    },
    data: { password: 'c2VjcmV0' },
  }

  test('withoutManagedFields leaves the rest, and the given object as it was', () => {
    const { managedFields: _, ...metadata } = object.metadata
    expect(withoutManagedFields(object)).toEqual({ ...object, metadata })
    expect(object.metadata.managedFields).toBeDefined()
    const bare = { metadata: { name: 'x' } }
    expect(withoutManagedFields(bare)).toBe(bare)
  })

  test('metadataOnly holds nothing of the content, not even where kubectl copies it', () => {
    const kept = metadataOnly(object)
    expect(kept).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'a', uid: 'u', resourceVersion: '7', labels: { l: '1' }, annotations: { keep: 'this' } },
    })
    expect(JSON.stringify(kept)).not.toContain('c2VjcmV0')
  })
})
