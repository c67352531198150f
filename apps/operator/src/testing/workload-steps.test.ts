import { KubeApiError, type KubeClient, type KubeObject, type ObjectKey } from '@thv/kube'
import { expect, it } from 'vitest'
import { workloadSteps } from './workload-steps.ts'

it('the second try of a test makes the objects that its first try has left again', async () => {
  const objects = new Map<string, KubeObject>()
  const deleted: string[] = []
  const admin = {
    async create(_: unknown, object: KubeObject) {
      const { name } = object.metadata
      const call = { verb: 'create', target: name }
      if (objects.has(name)) throw new KubeApiError({ call, status: 409, body: { reason: 'AlreadyExists', message: 'it exists' } })
      if (name === 'bad') throw new KubeApiError({ call, status: 422, body: { reason: 'Invalid', message: 'no' } })
      objects.set(name, object)
      return object
    },
    // Its finalizer goes a moment later.
    async delete(_: unknown, { name }: ObjectKey) {
      deleted.push(name)
      setTimeout(() => objects.delete(name), 10)
    },
    tryGet: async (_: unknown, { name }: ObjectKey) => objects.get(name),
  } as unknown as KubeClient
  const steps = workloadSteps({ admin, namespace: 'team', manager: {} as never, hasControllers: false }, 'MCPServer')
  await steps.create('web', { image: 'x:1' })
  expect(deleted).toEqual([])
  await steps.create('web', { image: 'x:2' })
  expect(deleted).toEqual(['web'])
  expect(objects.get('web')).toMatchObject({ metadata: { namespace: 'team', name: 'web' }, spec: { image: 'x:2' } })
  await expect(steps.create('bad', {})).rejects.toThrow('no')
})
