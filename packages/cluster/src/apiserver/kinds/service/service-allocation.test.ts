import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { describe, expect, it } from 'vitest'
import { ObjectStore } from '../../../store/object-store.ts'
import { at, textAt } from '../../objects/served-kind.ts'
import { StatusError } from '../../objects/status-error.ts'
import { allocateForService } from './service-allocation.ts'
import { withServiceDefaults } from './service-defaults.ts'

const RANGE = '127.9.0.0/29'

function service(name: string, spec: JsonObject = {}): JsonObject {
  return withServiceDefaults({ metadata: { name, namespace: 'a' }, spec: { ports: [{ port: 80 }], ...spec } })
}

function storeOf(): { create(name: string, spec?: JsonObject): JsonObject; store: ObjectStore } {
  const store = new ObjectStore()
  return {
    store,
    create(name, spec) {
      const body = allocateForService(service(name, spec), { store, serviceRange: RANGE })
      store.create('services', `a/${name}`, body)
      return body
    },
  }
}

const addressOf = (body: JsonObject) => textAt(body, 'spec', 'clusterIP')

describe('addresses and ports of a Service', () => {
  it('is a distinct address for each, until there are none, and again when one has gone', () => {
    const { create, store } = storeOf()
    const addresses = ['s1', 's2', 's3', 's4', 's5', 's6'].map((name) => addressOf(create(name)))
    expect(new Set(addresses).size).toBe(6)
    create('headless', { clusterIP: 'None' })
    create('name', { type: 'ExternalName', externalName: 'example.com' })
    const full = () => create('s7')
    expect(full).toThrow(StatusError)
    expect(full).toThrow('Internal error occurred: failed to allocate a serviceIP: range is full')
    const gone = store.get('services', 'a/s3')
    if (gone === undefined) throw new Error('not stored')
    store.delete(gone)
    expect(addressOf(create('s7'))).toBe(addresses[2])
  })

  it('stays when the Service is written again from its manifest', () => {
    const { create, store } = storeOf()
    const old = create('s1', { type: 'NodePort' })
    const again = allocateForService(service('s1', { type: 'NodePort' }), { store, serviceRange: RANGE, old })
    expect(again).toEqual(old)
  })

  it('stays when the range has become another', () => {
    const { create, store } = storeOf()
    const old = create('s1')
    const again = allocateForService(service('s1', { selector: { a: 'b' } }), { store, serviceRange: '127.10.0.0/29', old })
    expect(addressOf(again)).toBe(addressOf(old))
  })

  it('is nothing of another Service: neither its address nor its node port', () => {
    const { create } = storeOf()
    const first = create('s1', { type: 'NodePort' })
    expect(() => create('s2', { clusterIP: addressOf(first) })).toThrow('provided IP is already allocated')
    const ports = at(first, 'spec', 'ports') as readonly JsonObject[]
    expect(() => create('s2', { type: 'NodePort', ports: [...ports] })).toThrow('provided port is already allocated')
  })
})
