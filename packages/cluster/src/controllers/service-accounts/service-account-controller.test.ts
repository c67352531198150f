import { configMaps, namespaces, serviceAccounts } from '@thv/kube'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedPlane, startEmbeddedPlane } from '../scenarios/testing/embedded-plane.ts'
import { serviceAccountController } from './service-account-controller.ts'

describe('accounts and authorities of namespaces', () => {
  let plane: EmbeddedPlane
  beforeAll(async () => {
    plane = await startEmbeddedPlane([(env) => serviceAccountController(env, { rootCaPem: 'PEM' })])
  })
  afterAll(async () => {
    await plane[Symbol.asyncDispose]()
    expect(plane.errors).toEqual([])
  })

  const account = (namespace: string) => plane.env.client.tryGet(serviceAccounts, { namespace, name: 'default' })
  const authority = async (namespace: string) => (await plane.env.client.tryGet(configMaps, { namespace, name: 'kube-root-ca.crt' }))?.data

  it.each(['default', 'kube-system', 'kube-public'])('%s has both from the start', async (namespace) => {
    await expect.poll(() => account(namespace)).toBeDefined()
    await expect.poll(() => authority(namespace)).toEqual({ 'ca.crt': 'PEM' })
  })

  it('a new namespace gets both, and again when they are deleted or changed', async () => {
    const { client } = plane.env
    const namespace = 'fresh'
    await client.create(namespaces, { metadata: { name: namespace } })
    await expect.poll(() => authority(namespace)).toEqual({ 'ca.crt': 'PEM' })
    const first = (await account(namespace))?.metadata.uid
    expect(first).toBeDefined()
    await client.delete(serviceAccounts, { namespace, name: 'default' })
    await expect.poll(async () => (await account(namespace))?.metadata.uid ?? first).not.toBe(first)
    const key = { namespace, name: 'kube-root-ca.crt' }
    await client.patch(configMaps, key, { kind: 'merge', body: { data: { 'ca.crt': 'forged', more: 'x' } } })
    await expect.poll(() => authority(namespace)).toEqual({ 'ca.crt': 'PEM' })
    await client.delete(configMaps, key)
    await expect.poll(() => authority(namespace)).toEqual({ 'ca.crt': 'PEM' })
  })

  it('a namespace that goes gets nothing back', async () => {
    const { client } = plane.env
    const namespace = 'going'
    await client.create(namespaces, { metadata: { name: namespace } })
    await expect.poll(() => authority(namespace)).toBeDefined()
    await client.delete(namespaces, { name: namespace }) // no controller finalizes it here
    await client.delete(serviceAccounts, { namespace, name: 'default' })
    await client.create(namespaces, { metadata: { name: 'later' } })
    await expect.poll(() => account('later')).toBeDefined()
    expect(await account(namespace)).toBeUndefined()
  })
})
