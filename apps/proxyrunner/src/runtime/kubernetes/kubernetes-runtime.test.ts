import type { KubeClient } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { isRuntimeError } from '../runtime-errors.ts'
import { configOf, memoryLog } from '../testing/runtime-fixtures.ts'
import { createKubernetesRuntime } from './kubernetes-runtime.ts'

const client = {} as KubeClient
const create = (document: Record<string, unknown>, more: object = {}) =>
  createKubernetesRuntime({ config: configOf(document), client, namespace: 'team-a', log: memoryLog(), ...more })

describe('createKubernetesRuntime', () => {
  it('refuses stdio without a way to attach', () => {
    expect(() => create({})).toThrow(expect.objectContaining({ code: 'attach_unavailable' }))
    expect(create({}, { attach: { attach: () => Promise.reject(new Error('no')) } }).name).toBe('kubernetes')
  })

  it('refuses a config that cannot exist in a cluster', () => {
    expect(() => create({ transport: 'sse' })).toThrow(/target_port/)
  })

  it('can hold one connection per pod', () => {
    const attach = { attach: () => Promise.reject(new Error('no')) }
    expect(create({}, { attach }).stdioCapacity).toBe(1)
    expect(create({ scaling_config: { backend_replicas: 3 } }, { attach }).stdioCapacity).toBe(3)
  })

  it('does not attach to a server with a port, and closes though nothing was started', async () => {
    const runtime = create({ transport: 'sse', target_port: 8080 })
    const error = await runtime.openStdio(new AbortController().signal).catch((e: unknown) => e)
    expect(isRuntimeError(error, 'attach_unavailable')).toBe(true)
    await runtime.close()
    await expect(runtime.startServer(new AbortController().signal)).rejects.toThrow('closed')
  })
})
