import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { startBackend } from '@thv/http/testing/backend'
import { systemClock } from '@thv/kernel/clock'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addressPolicyFor, type IncomingProvider, vetProviderUrl } from './incoming-provider.ts'
import { createProviderClient, type ProviderClient } from './provider-client.ts'

const provider: IncomingProvider = { name: 'p', issuer: 'https://idp.example', allowPrivateIP: true }

describe('addresses of a provider', () => {
  it.each([
    ['https://idp.example/x', {}, true],
    ['http://localhost:80/', {}, true],
    ['http://127.0.0.1/', {}, true],
    ['http://[::1]/', {}, true],
    ['http://127.0.0.2/', {}, false],
    ['http://localhost.example/', {}, false],
    ['http://idp.example/', {}, false],
    ['http://idp.example/', { allowHttp: true }, true],
    ['file:///etc/passwd', { allowHttp: true }, false],
    ['https://user:secret@idp.example/', {}, false],
    ['nonsense', {}, false],
  ])('%s with %j: %s', (url, more, good) => {
    const vet = () => vetProviderUrl(url, { ...provider, ...more })
    if (good) expect(vet().href).toBe(new URL(url).href)
    else expect(vet).toThrow(expect.objectContaining({ code: 'auth_provider_unavailable', message: expect.not.stringContaining('secret') }))
  })

  const open = { denyPrivate: true, allowPrivate: true, allowLoopback: true }
  it.each<[string, Partial<IncomingProvider>, object | undefined]>([
    ['https://idp.example', { allowPrivateIP: false }, { denyPrivate: true }],
    ['https://idp.example', {}, open],
    ['https://kubernetes.default.svc', { issuer: 'https://kubernetes.default.svc', allowPrivateIP: false }, { denyPrivate: true }],
    ['https://kubernetes.default.svc/keys', { issuer: 'https://kubernetes.default.svc' }, undefined],
    ['https://kubernetes.default.svc.cluster.local', { jwksUrl: 'https://kubernetes.default.svc.cluster.local/keys' }, undefined],
    // Named by a document only, or only a little alike.
    ['https://kubernetes.default.svc', {}, open],
    ['https://kubernetes.default.svc.evil.example', { issuer: 'https://kubernetes.default.svc' }, open],
    ['https://evil.kubernetes.default', { issuer: 'https://evil.kubernetes.default' }, open],
  ])('%s of %j are called under a policy', (url, more, policy) => {
    expect(addressPolicyFor(new URL(url), { ...provider, ...more })).toEqual(policy)
  })
})

describe('over TLS', () => {
  const ca = createCertificate({ commonName: 'test ca', ca: true })
  const leaf = createCertificate({ commonName: 'idp', hosts: ['127.0.0.1'], issuer: ca })
  let folder: string
  let outbound: Outbound
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'thv-auth-'))
    outbound = createOutbound()
  })
  afterAll(async () => {
    await outbound.close()
    await rm(folder, { recursive: true })
  })

  function clientWith(more: Partial<IncomingProvider>): ProviderClient {
    const { signal } = new AbortController()
    return createProviderClient({ provider: { ...provider, ...more }, outbound, clock: systemClock, timeoutMs: 5_000, signal })
  }

  it('trusts the CA of its file, as the file is at that moment', async () => {
    await using backend = await startBackend((_request, response) => void response.end('{"ok":1}'), leaf)
    const file = join(folder, 'ca.pem')
    const request = { url: `${backend.url}/x`, maxBytes: 100 }
    await writeFile(file, createCertificate({ commonName: 'other ca', ca: true }).certPem)
    const client = clientWith({ caCertPath: file })
    await expect(client.json(request)).rejects.toMatchObject({ code: 'auth_provider_unavailable' })
    await expect(clientWith({}).json(request)).rejects.toMatchObject({ code: 'auth_provider_unavailable' })
    await writeFile(file, ca.certPem)
    for (let i = 0; i < 3; i++) expect((await client.json(request)).json).toEqual({ ok: 1 })
    expect(backend.requests).toHaveLength(3)
    // A Kubernetes API server rejects a request for its keys that accepts application/json alone.
    for (const { headers } of backend.requests) expect(headers['accept']).toContain('application/jwk-set+json')
    await writeFile(file, 'nonsense')
    await expect(client.json(request)).rejects.toMatchObject({ message: expect.stringContaining('holds no certificate') })
  })
})
