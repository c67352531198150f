import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { apiRequest } from './http-request.ts'
import { describeCluster, ensureNamespace, sharedCluster, testNamespace } from './test-cluster.ts'

describeCluster('shared cluster', () => {
  test('serves the administrator, and rejects requests without a token', async () => {
    const cluster = sharedCluster()
    expect((await apiRequest(cluster, '/api/v1/secrets')).status).toBe(200)
    expect((await apiRequest(cluster, '/api/v1/secrets', { token: 'wrong' })).status).toBe(401)
    expect((await apiRequest(cluster, '/api/v1/secrets', { headers: { authorization: '' } })).status).toBe(403)
  })

  test('each namespace is new', async () => {
    const [one, two] = [await testNamespace('x'), await testNamespace('x')]
    expect(one).not.toBe(two)
    await ensureNamespace(one)
    const made = await apiRequest(sharedCluster(), `/api/v1/namespaces/${one}`)
    expect(made.json()).toMatchObject({ metadata: { name: one }, status: { phase: 'Active' } })
  })

  test('its kubectl works with its kubeconfig', async () => {
    const { kubectlPath, kubeconfigPath, version } = sharedCluster()
    const { stdout } = await promisify(execFile)(kubectlPath, ['--kubeconfig', kubeconfigPath, 'version', '-o', 'json'])
    expect(JSON.parse(stdout)).toMatchObject({ serverVersion: { gitVersion: version } })
  })
})
