import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { expect, onTestFinished, test } from 'vitest'
import { documentOf, eventually, registryFile, registryWorld, type Server, type Settings } from './registry-world.ts'
import { startTraffic } from './traffic.ts'

const callers = {
  root: { sub: 'root', group: 'admins' },
  publisher: { sub: 'publisher', role: 'entries', team: 'a' },
  reader: { sub: 'reader', team: 'b' },
  stranger: { sub: 'stranger' },
} as const
type CallerName = keyof typeof callers

test('tokens, roles and claims from end to end; keys rotate and the configuration changes while requests run', async () => {
  const idp = await startOidcServer()
  onTestFinished(() => idp[Symbol.asyncDispose]())
  const world = registryWorld()
  const file = (name: string) => {
    const path = join(world.folder, `${name}.json`)
    writeFileSync(path, registryFile([documentOf(`io.example/${name}`)]))
    return { name, file: { path }, syncPolicy: { interval: '1h' } }
  }
  const settings = (more: { registries?: object[]; audience?: string } = {}): Settings => ({
    sources: [
      { name: 'own', managed: {}, claims: { team: ['a', 'b'] } },
      { ...file('shared'), claims: { team: ['a', 'b'] } },
      { ...file('for-b'), claims: { team: 'b' } },
      file('unclaimed'),
    ],
    registries: [
      { name: 'all', sources: ['own', 'shared', 'for-b', 'unclaimed'], claims: { team: ['a', 'b'] } },
      ...(more.registries ?? []),
    ],
    auth: {
      mode: 'oauth',
      oauth: {
        providers: [{ name: 'idp', issuerUrl: idp.issuer, audience: more.audience ?? 'registry', allowPrivateIP: true }],
      },
      authz: { roles: { superAdmin: [{ group: 'admins' }], manageEntries: [{ role: 'entries' }] } },
    },
  })
  const config = world.config(settings())
  const server = await world.serve(config)
  await server.ready()
  const takeTokens = async (audience = 'registry') => {
    const taken = await Promise.all(Object.entries(callers).map(async ([name, claims]) => [name, await idp.token({ claims, audience })]))
    return Object.fromEntries(taken) as Record<CallerName, string>
  }
  let tokens = await takeTokens()

  // The view of each caller, through each endpoint.
  const seen: Record<CallerName, string[] | number> = {
    root: ['io.example/for-b', 'io.example/shared', 'io.example/unclaimed'],
    publisher: ['io.example/shared'],
    reader: ['io.example/for-b', 'io.example/shared'],
    stranger: 403,
  }
  for (const name of Object.keys(callers) as CallerName[]) {
    const token = tokens[name]
    expect([name, await listed(server, token)]).toEqual([name, seen[name]])
    expect([name, await found(server, token)]).toEqual([name, seen[name]])
    const { status } = await server.get('/registry/all/v0.1/servers/io.example%2Ffor-b/versions/latest', { token })
    expect([name, status]).toEqual([name, { root: 200, publisher: 404, reader: 200, stranger: 403 }[name]])
    expect([name, (await server.get('/v1/sources', { token })).status]).toEqual([name, name === 'root' ? 200 : 403])
    expect((await server.get('/v1/me', { token })).json).toMatchObject({ subject: name })
  }
  expect((await server.get('/registry/all/v0.1/servers')).status).toBe(401)
  expect((await server.get('/registry/all/v0.1/servers', { token: await idp.token({ audience: 'others' }) })).status).toBe(401)

  const publication = { server: documentOf('io.example/of-a'), claims: { team: 'a' } }
  const publish = async (name: CallerName) => (await server.call('POST', '/v1/entries', { token: tokens[name], body: publication })).status
  expect([await publish('reader'), await publish('stranger'), await publish('publisher')]).toEqual([403, 403, 201])
  const ofA = '/registry/all/v0.1/servers/io.example%2Fof-a/versions/1.0.0'
  expect((await server.get(ofA, { token: tokens.publisher })).status).toBe(200)
  expect((await server.get(ofA, { token: tokens.reader })).status).toBe(404)

  let current = tokens.reader
  const paths = ['/registry/all/v0.1/servers', '/registry/all/v0.1/servers/io.example%2Fshared/versions/latest', '/v1/me']
  const traffic = startTraffic(server.url, paths, { headers: () => ({ authorization: `Bearer ${current}` }) })

  idp.rotateKeys({ keepOld: true })
  tokens = await takeTokens()
  await eventually('the new key is known', async () => Array.isArray(await listed(server, tokens.reader)))
  current = tokens.reader
  await traffic.more(30)

  for (let round = 0; round < 5; round++) {
    const name = `extra-${round}`
    world.config(settings({ registries: [{ name, sources: ['shared'], claims: { team: 'b' } }] }))
    await eventually('the changed file is in force', async () => {
      const { status } = await server.get(`/registry/${name}/v0.1/servers`, { token: tokens.reader })
      return status === 200
    })
    expect((await server.get(`/registry/${name}/v0.1/servers`, { token: tokens.publisher })).status).toBe(403)
    await traffic.more(20)
  }
  writeFileSync(config, '{"sources": [{"name": "x", "magic": {}}], "registries": []}')
  await eventually('the bad file is refused', () => server.lines().some(({ msg }) => msg.includes('is refused')))
  await traffic.more(20)
  expect(await traffic.stop()).toEqual([])

  world.config(settings({ audience: 'another' }))
  const another = await takeTokens('another')
  await eventually('the other audience is in force', async () => Array.isArray(await listed(server, another.reader)))
  expect(await listed(server, tokens.reader)).toBe(401)

  expect(await server.stop()).toBe(0)
  const { out, err } = await server.ended
  for (const token of [...Object.values(tokens), ...Object.values(another)]) expect(out + err).not.toContain(token)
})

async function listed(server: Server, token: string): Promise<string[] | number> {
  return namesOf(await server.get('/registry/all/v0.1/servers', { token }))
}

async function found(server: Server, token: string): Promise<string[] | number> {
  const names = namesOf(await server.get('/registry/all/v0.1/x/dev.toolhive/search?q=example', { token }))
  return typeof names === 'number' ? names : names.sort()
}

function namesOf({ status, json }: Awaited<ReturnType<Server['get']>>): string[] | number {
  return status === 200 ? json.servers.map(({ server }: { server: { name: string } }) => server.name) : status
}
