import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKubeClient, type KubeClient } from '../client/client.ts'
import { bearerToken, type Connection } from '../client/connection.ts'
import { pods, serviceAccounts } from '../objects/resource-types.ts'
import { collect } from '../testing/collect.ts'
import { podLogs } from './pod-logs.ts'
import { openPodStream } from './pod-stream.ts'

/** There is no node, so nothing can be attached to: what a real server refuses, and how it says so. */
describeCluster('pod streams on the API server', () => {
  let connection: Connection
  let client: KubeClient
  let namespace: string

  beforeAll(async () => {
    const { url, caPem, adminToken } = sharedCluster()
    connection = { server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) }
    client = createKubeClient(connection)
    namespace = await testNamespace('streams')
    await client.create(pods, { metadata: { namespace, name: 'waiting' }, spec: { containers: [{ name: 'mcp', image: 'x:1' }] } })
  })
  afterAll(() => client?.close())

  const attach = (pod: string, from: Connection = connection) =>
    openPodStream(from, { namespace, pod, container: 'mcp', kind: 'attach', stdin: true, stdout: true })

  test('a pod that does not exist', async () => {
    await expect(attach('missing')).rejects.toMatchObject({
      status: 404,
      reason: 'NotFound',
      message: expect.stringContaining('"missing" not found'),
    })
    await expect(collect(podLogs(client, { namespace, pod: 'missing' }))).rejects.toMatchObject({ status: 404 })
  })

  test('a pod that runs nowhere yet', async () => {
    const failed = await attach('waiting').catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'kube_status' })
  })

  itNeeds(['exec'], 'a container that it does not have', async () => {
    const options = { namespace, pod: 'waiting', container: 'other', kind: 'exec', command: ['ls'] } as const
    await expect(openPodStream(connection, options)).rejects.toMatchObject({ status: 400, message: expect.stringContaining('other') })
  })

  test('a token that is none', async () => {
    await expect(attach('waiting', { ...connection, auth: bearerToken('wrong') })).rejects.toMatchObject({ status: 401 })
  })

  itNeeds(['rbac'], 'an account without rights', async () => {
    await client.create(serviceAccounts, { metadata: { namespace, name: 'powerless' } })
    const answer = await client.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/powerless/token`, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    })
    const { status } = answer.json() as { status: { token: string } }
    await expect(attach('waiting', { ...connection, auth: bearerToken(status.token) })).rejects.toMatchObject({
      status: 403,
      message: expect.stringContaining('pods/attach'),
    })
  })
})
