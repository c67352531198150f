import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { processStart } from '@thv/programs/process-identity'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type ApiServer, startApiServer } from './api-server.ts'
import { startFaultyProxy } from './faults/faulty-proxy.ts'
import { startHttpFaultServer } from './faults/http-fault-server.ts'
import { apiRequest, request } from './http-request.ts'
import { describeCluster, testNamespace } from './test-cluster.ts'

describeCluster('private API server', () => {
  let server: ApiServer
  let namespace: string
  let configMaps: string

  beforeAll(async () => {
    server = await startApiServer({ uncachedResources: ['configmaps'] })
    namespace = await testNamespace('private', server)
    configMaps = `/api/v1/namespaces/${namespace}/configmaps`
  })
  afterAll(() => server?.stop())

  test('after a kill it is unreachable; a restart keeps address, tokens, certificates and objects', async () => {
    await create('survivor')
    const token = await server.serviceAccountToken({ namespace, name: 'kept' })
    await server.kill()
    await expect(apiRequest(server, configMaps)).rejects.toThrow(/ECONNREFUSED/)
    await server.restart()
    expect((await apiRequest(server, `${configMaps}/survivor`)).status).toBe(200)
    expect(await whoAmI(token)).toMatchObject({ username: `system:serviceaccount:${namespace}:kept` })
  })

  test('a frozen server accepts connections and does not answer until unfrozen', async () => {
    for (let round = 0; round < 5; round++) {
      server.freeze()
      try {
        await expect(request(`${server.url}/readyz`, { caPem: server.caPem, limitMs: 200 })).rejects.toThrow(/no answer within/)
      } finally {
        server.unfreeze()
      }
      expect((await apiRequest(server, '/readyz')).status).toBe(200)
    }
  })

  test('a minted token is its ServiceAccount, with the groups the API server derives', async () => {
    const token = await server.serviceAccountToken({ namespace, name: 'robot' })
    expect(await whoAmI(token)).toMatchObject({
      username: `system:serviceaccount:${namespace}:robot`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    })
    expect((await apiRequest(server, configMaps, { token })).status).toBe(403)
  })

  test.each([
    ['expired for longer than the leeway', { expiresInSeconds: -90 }],
    ['for another audience', { audiences: ['elsewhere'] }],
  ])('a token is refused: %s', async (_, options) => {
    const token = await server.serviceAccountToken({ namespace, name: 'robot', ...options })
    expect((await apiRequest(server, '/api', { token })).status).toBe(401)
  })

  test('a token is refused: an account with another uid', async () => {
    const subject = `system:serviceaccount:${namespace}:robot`
    expect((await apiRequest(server, '/api', { token: server.mintToken({ subject, uid: 'x', expiresInSeconds: 60 }) })).status).toBe(401)
  })

  test('a client certificate is its user', async () => {
    const certificate = server.clientCertificate('carla', ['system:masters'])
    const url = `${server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews`
    const answer = await request(url, { method: 'POST', body: selfReview, caPem: server.caPem, certificate })
    expect(answer.json()).toMatchObject({ status: { userInfo: { username: 'carla', groups: ['system:masters', 'system:authenticated'] } } })
  })

  test('after a compaction an old continue token and an old watch are gone', async () => {
    for (const name of ['a', 'b', 'c']) await create(name)
    const page = (await apiRequest(server, `${configMaps}?limit=1`)).json<{ metadata: { continue: string; resourceVersion: string } }>()
      .metadata
    for (const name of ['d', 'e']) await create(name)
    await server.compact()
    await server.compact()
    const next = await apiRequest(server, `${configMaps}?limit=1&continue=${page.continue}`)
    expect(next.json()).toMatchObject({ code: 410, reason: 'Expired' })
    const watch = await apiRequest(server, `${configMaps}?watch=1&resourceVersion=${page.resourceVersion}&timeoutSeconds=5`)
    expect(watch.json()).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  })

  test('a client reaches it through both fault proxies', async () => {
    await using proxy = await startFaultyProxy(server.url)
    await using faults = await startHttpFaultServer({ url: proxy.url, caPem: server.caPem })
    faults.inject({ fault: { kind: 'status', status: 429, retryAfter: '1' } })
    const through = { ...server, url: faults.url, caPem: faults.caPem }
    expect((await apiRequest(through, configMaps)).status).toBe(429)
    expect((await apiRequest(through, configMaps)).json()).toMatchObject({ kind: 'ConfigMapList' })
    expect(proxy.counts.bytesDown).toBeGreaterThan(0)
  })

  test('stop leaves no process and no folder, even of a frozen server', async () => {
    const pids = server.pids
    expect(pids.map(processStart)).not.toContain(undefined)
    server.freeze()
    await server.stop()
    await server.stop()
    await vi.waitFor(() => expect(pids.map(processStart)).toEqual([undefined, undefined, undefined]), 10_000)
    expect(existsSync(dirname(server.kubeconfigPath))).toBe(false)
    await expect(server.restart()).rejects.toThrow(/stopped/)
  })

  test('a server that cannot start names its last log lines and leaves nothing behind', async () => {
    await expect(startApiServer({ extraArgs: ['--no-such-flag'] })).rejects.toThrow(
      /kube-apiserver ended with code 1.*last lines[\s\S]*no-such-flag/,
    )
  })

  test('when its process is killed, nothing of it stays', async () => {
    const module = fileURLToPath(new URL('./api-server.ts', import.meta.url))
    const script = `const { startApiServer } = await import(${JSON.stringify(module)})
      const { pids, kubeconfigPath } = await startApiServer()
      console.log(JSON.stringify({ pids, kubeconfigPath }))
      setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const line = await new Promise<string>((resolve) => createInterface({ input: owner.stdout }).once('line', resolve))
    const { pids, kubeconfigPath } = JSON.parse(line) as Pick<ApiServer, 'pids' | 'kubeconfigPath'>
    expect(pids.map(processStart)).not.toContain(undefined)
    owner.kill('SIGKILL')
    await vi.waitFor(() => expect(pids.map(processStart)).toEqual([undefined, undefined, undefined]), 20_000)
    expect(existsSync(dirname(kubeconfigPath))).toBe(false)
  })

  const selfReview = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }

  async function whoAmI(token: string): Promise<unknown> {
    const answer = await apiRequest(server, '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      method: 'POST',
      body: selfReview,
      token,
    })
    return answer.json<{ status?: { userInfo?: unknown } }>().status?.userInfo
  }

  async function create(name: string): Promise<void> {
    const answer = await apiRequest(server, configMaps, { method: 'POST', body: { metadata: { name } } })
    expect(answer.status).toBe(201)
  }
})
