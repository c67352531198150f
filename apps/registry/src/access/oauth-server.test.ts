import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type StartedRegistry, startRegistry } from '../testing/run-registry.ts'
import { until } from '../testing/until.ts'

/* The whole server from a configuration file, and a provider that is not ours. */

let folder: string
let idp: OidcServer
let server: StartedRegistry

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'thv-oauth-'))
  idp = await startOidcServer()
  const [config, secret] = [join(folder, 'config.yaml'), join(folder, 'secret')]
  writeFileSync(secret, `${idp.clientSecret}\n`)
  writeFileSync(
    config,
    `sources: [{name: own, managed: {}}]
registries: [{name: default, sources: [own]}]
storage: {memory: true}
auth:
  publicPaths: [/registry/default/v0.1/version]
  oauth:
    resourceUrl: https://registry.example.com
    providers:
      - {name: far, issuerUrl: "https://idp.invalid", audience: registry}
      - name: near
        issuerUrl: ${idp.issuer}
        audience: registry
        introspectionUrl: ${idp.introspectionUrl}
        clientId: ${idp.clientId}
        clientSecretFile: ${secret}
        allowPrivateIP: true
`,
  )
  server = await startRegistry(['--config', config, '--data-dir', folder])
})
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await idp?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

async function get(path: string, token?: string): Promise<{ status: number; headers: Headers; json: Record<string, unknown> }> {
  const answer = await fetch(`${server.url}${path}`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })
  return { status: answer.status, headers: answer.headers, json: (await answer.json()) as Record<string, unknown> }
}

describe('a registry that wants tokens', () => {
  it('leads a client from the challenge to the provider', async () => {
    const { status, headers, json } = await get('/registry/default/v0.1/servers')
    expect([status, json['code']]).toEqual([401, 'invalid_request'])
    const metadata = /resource_metadata="https:\/\/registry\.example\.com([^"]*)"/.exec(headers.get('www-authenticate') ?? '')?.[1]
    expect((await get(metadata ?? '')).json).toEqual({
      resource: 'https://registry.example.com',
      authorization_servers: ['https://idp.invalid', idp.issuer],
      bearer_methods_supported: ['header'],
    })
  })

  it('takes readable and opaque tokens for its audience', async () => {
    for (const format of ['jwt', 'opaque'] as const) {
      const good = await idp.token({ format, audience: 'registry', claims: { sub: 'ada' } })
      expect((await get('/registry/default/v0.1/servers', good)).status).toBe(200)
      expect((await get('/v1/me', good)).json).toMatchObject({ subject: 'ada' })
      expect((await get('/v1/me', await idp.token({ format, audience: 'others' }))).status).toBe(401)
    }
  })

  it('answers on public paths without one, and rejects writes', async () => {
    expect((await get('/openapi.json')).status).toBe(200)
    expect((await get('/registry/default/v0.1/version')).status).toBe(200)
    const publish = await fetch(`${server.url}/registry/default/v0.1/publish`, { method: 'POST', body: '{}' })
    expect(publish.status).toBe(401)
  })

  it('serves whom it knows while the provider is down, and asks the others to come back', async () => {
    const known = await idp.token({ format: 'opaque', audience: 'registry' })
    const readable = await idp.token({ audience: 'registry' })
    const unknown = await idp.token({ format: 'opaque', audience: 'registry' })
    expect((await get('/v1/me', known)).status).toBe(200)
    idp.fault = 'down'
    expect((await get('/v1/me', known)).status).toBe(200)
    expect((await get('/v1/me', readable)).status).toBe(200) // its key is known
    const { status, headers, json } = await get('/v1/me', unknown)
    expect([status, json['code']]).toEqual([503, 'temporarily_unavailable'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    idp.fault = undefined
  })

  it('keeps tokens and secrets out of its log', async () => {
    const token = await idp.token({ format: 'opaque', audience: 'registry' })
    await get('/v1/me', token)
    await get('/v1/me', 'not-a-token-of-anybody')
    await until(() => server.lines.some(({ msg }) => msg === 'identity provider cannot be asked')) // the one that is far
    const log = JSON.stringify(server.lines)
    for (const secret of [token, 'not-a-token-of-anybody', idp.clientSecret]) expect(log).not.toContain(secret)
  })
})
