import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBackend } from '@thv/http/testing/backend'
import { startGitServer } from '@thv/testkit/git/git-server'
import { expect, test } from 'vitest'
import { documentOf, eventually, registryFile, registryWorld } from './registry-world.ts'

test('a server with a git, an api and a file source serves all three outside of any cluster [001-006]', async () => {
  await using git = await startGitServer()
  const repository = await git.repository('catalog')
  await repository.commit({ 'registry.json': JSON.stringify({ servers: { 'from-git': { image: 'ghcr.io/org/git:1' } } }) })
  await using other = await startBackend((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(registryFile([documentOf('io.example/from-api')]))
  })
  const world = registryWorld()
  const path = join(world.folder, 'registry.json')
  writeFileSync(path, JSON.stringify({ servers: { 'from-file': { image: 'ghcr.io/org/file:1' } } }))
  const config = world.config({
    sources: [
      { name: 'git', git: { repository: `${git.url}/catalog`, path: 'registry.json' }, format: 'toolhive' },
      { name: 'api', api: { endpoint: other.url } },
      { name: 'file', file: { path }, format: 'toolhive' },
    ].map((source) => ({ ...source, syncPolicy: { interval: '1h' } })),
    registries: [{ name: 'all', sources: ['git', 'api', 'file'] }],
    sync: { allowedFolders: [world.folder] },
  })
  // Of a cluster there is neither an address nor a kubeconfig.
  const server = await world.serve(config, { env: { KUBERNETES_SERVICE_HOST: '', KUBECONFIG: '', HOME: world.folder } })
  await server.ready()
  const names = await eventually('all three are served', async () => {
    const { json } = await server.get('/registry/all/v0.1/servers')
    return json.servers.length === 3 && json.servers.map((each: { server: { name: string } }) => each.server.name).sort()
  })
  expect(names).toEqual(['io.example/from-api', 'io.github.stacklok/from-file', 'io.github.stacklok/from-git'])
  expect(await server.stop()).toBe(0)
})
