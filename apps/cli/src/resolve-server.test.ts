import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeObject } from '@thv/kube/objects/types'
import { mcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { mcpServer } from '@thv/resources/kinds/mcp-server/schema'
import { type KindDefinition, resourceTypeOf } from '@thv/resources/schema/kind-definition'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ProgramEnv } from './program.ts'
import { resolveServer } from './resolve-server.ts'
import { embeddedPlace } from './testing/command-place.ts'

let place: Awaited<ReturnType<typeof embeddedPlace>>
let fixture: Fixture
beforeAll(async () => {
  place = await embeddedPlace()
  fixture = await startFixture()
  mkdirSync(join(place.folder, 'below', 'deeper'), { recursive: true })
  await place.client.create({ group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false }, named('team'))
  await declare(mcpServer, { name: 'everything', url: fixture.url })
  await declare(mcpServer, { name: 'time', namespace: 'team', url: 'http://127.0.0.1:8081/sse#time' })
  await declare(mcpServer, { name: 'twice', namespace: 'team', url: 'http://127.0.0.1:1/mcp' })
  await declare(mcpServer, { name: 'young' })
  await declare(mcpServer, { name: 'broken', phase: 'Failed', message: 'the image does not exist' })
  const conditions = [{ type: 'Ready', status: 'False', reason: 'X', message: 'no image', lastTransitionTime: '2026-01-01T00:00:00Z' }]
  await declare(mcpServer, { name: 'waiting', phase: 'Pending', url: 'http://127.0.0.1:1/mcp', conditions })
  await declare(mcpRemoteProxy, { name: 'remote', url: 'http://127.0.0.1:8082/mcp' })
})
afterAll(async () => {
  await fixture.stop()
  await place.stop()
})

function env(cwd: string): ProgramEnv {
  return { out: () => {}, err: () => {}, cwd, variables: { HOME: '/nowhere' }, isTerminal: false }
}

describe('resolveServer', () => {
  it.each(['http://127.0.0.1:8080/mcp', 'https://mcp.example.com/sse?x=1'])('takes the URL %s as it is', async (url) => {
    expect(await resolveServer(url, {}, env('/nowhere'))).toBe(url)
  })

  it('finds a server by name, in its namespace or in the only other one that has it', async () => {
    expect(await resolveServer('everything', {}, env(place.folder))).toBe(fixture.url)
    expect(await resolveServer('remote', {}, env(join(place.folder, 'below', 'deeper')))).toBe('http://127.0.0.1:8082/mcp')
    expect(await resolveServer('time', {}, env(place.folder))).toBe('http://127.0.0.1:8081/sse')
    expect(await resolveServer('team/time', { dataDir: join(place.folder, '.thv') }, env('/nowhere'))).toBe('http://127.0.0.1:8081/sse')
  })

  it.each([
    ['everthing', /there is no server "everthing"\. Did you mean "everything"\? There are: /],
    ['team/everything', /there is no server "everything"/],
    ['toString', /there is no server "toString"/],
    ['a/b/c', /neither a URL, nor NAME, nor NAMESPACE\/NAME/],
    ['localhost:8080/mcp', /if it is a URL, write http:\/\/localhost:8080\/mcp/],
    ['ftp://example.com/', /only http and https URLs/],
    ['http://', /is not a URL/],
    ['http://user:secret@example.com/mcp', /must not carry a user name or password/],
  ])('%s: %s', async (typed, message) => {
    await expect(resolveServer(typed, {}, env(place.folder))).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(message),
    })
  })

  it('says why a server has no address', async () => {
    await expect(resolveServer('young', {}, env(place.folder))).rejects.toMatchObject({
      message: expect.stringMatching(/^MCPServer default\/young is Pending: it was declared a moment ago/),
    })
    await expect(resolveServer('waiting', {}, env(place.folder))).rejects.toMatchObject({
      message: expect.stringMatching(/^MCPServer default\/waiting is Pending: no image \("thv describe mcpserver waiting" has details\)/),
    })
    await expect(resolveServer('broken', {}, env(place.folder))).rejects.toMatchObject({
      message: expect.stringMatching(/^MCPServer default\/broken is Failed: the image does not exist/),
    })
  })

  it('says that there is no platform', async () => {
    await expect(resolveServer('everything', {}, env('/nowhere'))).rejects.toMatchObject({
      code: 'kubeconfig_invalid',
      message: expect.stringMatching(/no local platform.*start a platform with "thv up"/),
    })
    const gone = await embeddedPlace()
    await gone.server.close()
    await expect(resolveServer('everything', {}, env(gone.folder))).rejects.toMatchObject({
      code: 'kube_unreachable',
      message: expect.stringMatching(/the platform in .*\.thv is not responding; start it with "thv up"/),
    })
  })
})

it('thv call takes a name', async () => {
  expect((await place.thv('call', 'everything', 'greet')).out).toBe('Hello, World!\n')
  expect((await place.thv('tools', 'default/everything')).out).toContain('add_numbers')
})

interface Declared {
  readonly name: string
  readonly namespace?: string
  readonly url?: string
  readonly phase?: string
  readonly message?: string
  readonly conditions?: readonly object[]
}

async function declare(kind: KindDefinition, { name, namespace = 'default', ...status }: Declared): Promise<void> {
  const type = resourceTypeOf(kind)
  const spec = kind === mcpServer ? { image: 'example.com/x:1', transport: 'stdio' } : { remoteUrl: 'https://example.com/mcp' }
  const object = { ...named(name), metadata: { name, namespace }, spec } as KubeObject
  await place.client.create(type, object as never)
  if (Object.keys(status).length > 0)
    await place.client.patch(type, { namespace, name }, { kind: 'merge', body: { status } }, { subresource: 'status' })
}

function named(name: string): KubeObject {
  return { metadata: { name } }
}
