import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKubeClient } from '../client/client.ts'
import { loadKubeconfig } from './kubeconfig.ts'

describeCluster('credential plugins on the API server', () => {
  let server: TestServer
  let folder: string

  beforeAll(async () => {
    server = await startTestServer()
    folder = await mkdtemp(join(tmpdir(), 'exec-cluster-'))
  })
  afterAll(async () => {
    await server?.stop()
    if (folder) await rm(folder, { recursive: true })
  })

  async function whoAmI(status: Record<string, string>): Promise<string> {
    const credential = { kind: 'ExecCredential', apiVersion: 'client.authentication.k8s.io/v1', status }
    const answer = join(folder, 'answer.json')
    await writeFile(answer, JSON.stringify(credential))
    const exec = { apiVersion: credential.apiVersion, command: 'cat', args: [answer], interactiveMode: 'Never' }
    const path = join(folder, 'config')
    const ca = Buffer.from(server.caPem).toString('base64')
    await writeFile(
      path,
      JSON.stringify({
        'current-context': 'x',
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        clusters: [{ name: 'c', cluster: { server: server.url, 'certificate-authority-data': ca } }],
        users: [{ name: 'u', user: { exec } }],
      }),
    )
    const client = createKubeClient(await loadKubeconfig({ path }))
    try {
      const answered = await client.raw('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      })
      return (answered.json() as { status: { userInfo: { username: string } } }).status.userInfo.username
    } finally {
      await client.close()
    }
  }

  test('a token', async () => {
    const token = await server.serviceAccountToken({ namespace: 'default', name: 'plugin' })
    expect(await whoAmI({ token })).toBe('system:serviceaccount:default:plugin')
  })

  itNeeds(['client-certificates'], 'a client certificate', async () => {
    const { certPem, keyPem } = server.clientCertificate('ann', ['system:masters'])
    expect(await whoAmI({ clientCertificateData: certPem, clientKeyData: keyPem })).toBe('ann')
  })

  test('a token that the server does not know', async () => {
    await expect(whoAmI({ token: 'wrong' })).rejects.toMatchObject({ status: 401 })
  })
})
