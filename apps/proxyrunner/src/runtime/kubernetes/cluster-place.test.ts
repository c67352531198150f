import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { KubeApiError, type KubeClient, noAuth } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { testFolder } from '../testing/runtime-fixtures.ts'
import { detectPlatform, resolveNamespace } from './cluster-place.ts'

describe('resolveNamespace', () => {
  it('asks the mounted file, POD_NAMESPACE, the kubeconfig, in this order', async () => {
    await using folder = await testFolder()
    const base = { server: 'https://x', tls: {}, auth: noAuth }
    const connection = { ...base, namespace: 'of-kubeconfig' }
    const root = folder.path
    expect(await resolveNamespace({ env: {}, connection: base, root })).toBe('default')
    expect(await resolveNamespace({ env: {}, connection, root })).toBe('of-kubeconfig')
    expect(await resolveNamespace({ env: { POD_NAMESPACE: 'of-env' }, connection, root })).toBe('of-env')
    const account = join(root, 'var/run/secrets/kubernetes.io/serviceaccount')
    await mkdir(account, { recursive: true })
    await writeFile(join(account, 'namespace'), 'of-file\n')
    expect(await resolveNamespace({ env: { POD_NAMESPACE: 'of-env' }, connection, root })).toBe('of-file')
  })
})

describe('detectPlatform', () => {
  const answering = (status: number): Pick<KubeClient, 'raw'> => ({
    raw: async (_method, path) => {
      expect(path).toBe('/apis/route.openshift.io/v1')
      if (status >= 300) throw new KubeApiError({ call: { verb: 'get', target: path }, status, body: undefined })
      return { status, headers: {}, body: Buffer.alloc(0), text: () => '', json: () => ({}) }
    },
  })

  it.each<[string, number, Record<string, string>, string, number]>([
    ['the variable says so', 500, { OPERATOR_OPENSHIFT: 'true' }, 'openshift', 0],
    ['the variable says no', 200, { OPERATOR_OPENSHIFT: 'false' }, 'kubernetes', 0],
    ['there are Routes', 200, {}, 'openshift', 0],
    ['there are none', 404, {}, 'kubernetes', 0],
    ['the cluster does not say', 403, {}, 'kubernetes', 1],
  ])('when %s', async (_, status, env, expected, reported) => {
    const errors: unknown[] = []
    expect(await detectPlatform(answering(status), env, (error) => errors.push(error))).toBe(expected)
    expect(errors).toHaveLength(reported)
  })
})
