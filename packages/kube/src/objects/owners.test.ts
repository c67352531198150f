import { describe, expect, test } from 'vitest'
import { controllerOf, controllerRef, isControlledBy, ownerKeys, setControllerReference } from './owners.ts'
import type { ObjectMeta, ResourceType } from './types.ts'

const type: ResourceType = { group: 'example.com', version: 'v1', kind: 'Boss', plural: 'bosses', namespaced: true }
const boss = (extra: Partial<ObjectMeta> = {}) => ({ metadata: { name: 'boss', namespace: 'ns', uid: 'u1', ...extra } })
const child = (extra: Partial<ObjectMeta> = {}) => ({ kind: 'ConfigMap', metadata: { name: 'child', namespace: 'ns', ...extra } })

test('controllerRef names the owner with its group and uid', () => {
  expect(controllerRef(boss(), type)).toEqual({
    apiVersion: 'example.com/v1',
    kind: 'Boss',
    name: 'boss',
    uid: 'u1',
    controller: true,
    blockOwnerDeletion: true,
  })
  expect(controllerRef(boss(), { ...type, group: '' }, { blockOwnerDeletion: false })).toMatchObject({
    apiVersion: 'v1',
    blockOwnerDeletion: false,
  })
  expect(() => controllerRef({ metadata: { name: 'new' } }, type)).toThrow('no uid')
})

describe('setControllerReference', () => {
  test('gives a copy, keeps other owners, renews its own reference', () => {
    const other = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u9' }
    const stale = { ...controllerRef(boss(), type), apiVersion: 'example.com/v1alpha1', controller: false }
    const given = child({ ownerReferences: [other, stale] })
    const owned = setControllerReference(given, { object: boss(), type })
    expect(owned.metadata.ownerReferences).toEqual([other, controllerRef(boss(), type)])
    expect(given.metadata.ownerReferences).toEqual([other, stale])
    expect(setControllerReference(child(), { object: boss(), type }).metadata.ownerReferences).toHaveLength(1)
  })

  test('refuses what another controller owns, and names that one', () => {
    const taken = setControllerReference(child(), { object: boss({ name: 'first', uid: 'u0' }), type })
    expect(() => setControllerReference(taken, { object: boss(), type })).toThrow('ConfigMap child is controlled by Boss first')
  })

  test('refuses owners that the garbage collector would not find', () => {
    expect(() => setControllerReference(child({ namespace: 'other' }), { object: boss(), type })).toThrow('namespace other')
    expect(() => setControllerReference({ metadata: { name: 'wide' } }, { object: boss(), type })).toThrow('no namespace')
    const wide = { metadata: { name: 'boss', uid: 'u1' } }
    expect(setControllerReference(child(), { object: wide, type: { ...type, namespaced: false } }).metadata.ownerReferences).toHaveLength(1)
  })
})

test('control is by uid', () => {
  const owned = setControllerReference(child(), { object: boss(), type })
  expect(isControlledBy(owned, boss())).toBe(true)
  expect(isControlledBy(owned, boss({ uid: 'u2' }))).toBe(false)
  expect(isControlledBy(child(), { metadata: { name: 'boss' } })).toBe(false)
  expect(controllerOf(owned)?.name).toBe('boss')
})

test('ownerKeys finds owners by group and kind, whatever their version', () => {
  const refs = [
    { apiVersion: 'example.com/v1alpha1', kind: 'Boss', name: 'a', uid: '1', controller: true },
    { apiVersion: 'example.com/v1', kind: 'Boss', name: 'b', uid: '2' },
    { apiVersion: 'other.com/v1', kind: 'Boss', name: 'c', uid: '3', controller: true },
    { apiVersion: 'v1', kind: 'Boss', name: 'd', uid: '4', controller: true },
  ]
  const object = child({ ownerReferences: refs })
  const filter = { group: 'example.com', kind: 'Boss' }
  expect(ownerKeys(object, filter)).toEqual([{ namespace: 'ns', name: 'a' }])
  expect(ownerKeys(object, { ...filter, anyOwner: true })).toEqual([
    { namespace: 'ns', name: 'a' },
    { namespace: 'ns', name: 'b' },
  ])
  expect(ownerKeys(object, { ...filter, namespaced: false })).toEqual([{ name: 'a' }])
  expect(ownerKeys(object, { group: '', kind: 'Boss' })).toEqual([{ namespace: 'ns', name: 'd' }])
  expect(ownerKeys(child(), filter)).toEqual([])
})
