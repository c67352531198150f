import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { defaultConnection } from './default-connection.ts'
import { inClusterConnection } from './in-cluster.ts'

const { certPem: cert } = createCertificate({ commonName: 'test', ca: true })
const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }

let root: string
let account: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'in-cluster-'))
  account = join(root, 'var/run/secrets/kubernetes.io/serviceaccount')
  await mkdir(account, { recursive: true })
  await mkdir(join(root, '.kube'))
})
beforeEach(async () => {
  await writeFile(join(account, 'token'), 'pod-token\n')
  await writeFile(join(account, 'ca.crt'), cert)
  await writeFile(join(account, 'namespace'), 'team\n')
})
afterAll(() => rm(root, { recursive: true }))

describe('inClusterConnection', () => {
  it('takes address, token, CA and namespace of the pod', async () => {
    const connection = await inClusterConnection({ env, root })
    expect(connection).toMatchObject({ server: 'https://10.0.0.1:443', tls: { ca: cert }, namespace: 'team' })
    expect(await connection.auth.header()).toBe('Bearer pod-token')
    await writeFile(join(account, 'token'), 'newer')
    connection.auth.invalidate()
    expect(await connection.auth.header()).toBe('Bearer newer')
  })

  it.each([
    ['fd00::1', 'https://[fd00::1]:443'],
    ['kubernetes.default.svc', 'https://kubernetes.default.svc:443'],
  ])('host %s', async (host, server) => {
    expect((await inClusterConnection({ env: { ...env, KUBERNETES_SERVICE_HOST: host }, root })).server).toBe(server)
  })

  it('does without a namespace file', async () => {
    await rm(join(account, 'namespace'))
    expect(await inClusterConnection({ env, root })).not.toHaveProperty('namespace')
  })

  it.each([
    ['no host', { KUBERNETES_SERVICE_PORT: '443' }],
    ['no port', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }],
    ['an empty host', { ...env, KUBERNETES_SERVICE_HOST: '' }],
    ['a port that is none', { ...env, KUBERNETES_SERVICE_PORT: 'tcp://10.0.0.1:443' }],
    ['a port out of range', { ...env, KUBERNETES_SERVICE_PORT: '99999' }],
    ['a host with a path', { ...env, KUBERNETES_SERVICE_HOST: 'evil/path' }],
    ['a host with a user', { ...env, KUBERNETES_SERVICE_HOST: 'a@evil' }],
  ])('%s is in_cluster_config_missing', async (_name, badEnv) => {
    await expect(inClusterConnection({ env: badEnv, root })).rejects.toMatchObject({ code: 'in_cluster_config_missing' })
  })

  it.each(['token', 'ca.crt'])('names the missing file %s', async (file) => {
    await rm(join(account, file))
    await expect(inClusterConnection({ env, root })).rejects.toMatchObject({
      code: 'in_cluster_config_missing',
      message: expect.stringContaining(file),
    })
  })

  it('refuses a CA that is no PEM', async () => {
    await writeFile(join(account, 'ca.crt'), 'hello')
    await expect(inClusterConnection({ env, root })).rejects.toMatchObject({ code: 'in_cluster_config_missing' })
  })
})

describe('defaultConnection', () => {
  const kubeconfig = (server: string) =>
    JSON.stringify({
      'current-context': 'a',
      contexts: [
        { name: 'a', context: { cluster: 'c' } },
        { name: 'b', context: { cluster: 'c', namespace: 'from-b' } },
      ],
      clusters: [{ name: 'c', cluster: { server } }],
    })
  const explicit = () => join(root, 'explicit')
  const listed = () => join(root, 'listed')

  beforeEach(async () => {
    await writeFile(explicit(), kubeconfig('https://explicit'))
    await writeFile(listed(), kubeconfig('https://listed'))
    await writeFile(join(root, '.kube/config'), kubeconfig('https://home'))
  })

  it('prefers the explicit file, then KUBECONFIG, then the pod, then the home folder', async () => {
    const all = { env: { ...env, KUBECONFIG: listed() }, home: root, root }
    expect((await defaultConnection({ ...all, kubeconfig: explicit() })).server).toBe('https://explicit')
    expect((await defaultConnection(all)).server).toBe('https://listed')
    expect((await defaultConnection({ ...all, env })).server).toBe('https://10.0.0.1:443')
    expect((await defaultConnection({ ...all, env: {} })).server).toBe('https://home')
  })

  it('a named context leaves the pod out of it', async () => {
    expect(await defaultConnection({ env, home: root, root, context: 'b' })).toMatchObject({ server: 'https://home', namespace: 'from-b' })
  })

  it('does not fall back when the chosen source is broken', async () => {
    await expect(defaultConnection({ kubeconfig: join(root, 'absent'), env: {}, home: root })).rejects.toMatchObject({
      code: 'kubeconfig_invalid',
    })
    await rm(join(account, 'token'))
    await expect(defaultConnection({ env, home: root, root })).rejects.toMatchObject({ code: 'in_cluster_config_missing' })
  })

  it('says what it looked for when there is nothing', async () => {
    await expect(defaultConnection({ env: {}, home: join(root, 'no-home') })).rejects.toThrow('KUBECONFIG is not set')
  })
})
