import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from './catalog-entry.ts'
import { convertToolhiveRegistry } from './convert-toolhive.ts'
import { readToolhiveRegistry } from './toolhive-registry.ts'
import { readUpstreamRegistry, writeUpstreamRegistry } from './upstream-registry.ts'

const convert = (file: unknown, includeGrouped = false) => convertToolhiveRegistry(readToolhiveRegistry(file), { includeGrouped })
const only = (server: object, section = 'servers', key = 'atlas'): JsonObject | undefined =>
  convert({ servers: {}, [section]: { [key]: server } }).documents[0]

const container = {
  title: 'Atlas',
  description: 'Maps, routes and elevation profiles for hikers, cyclists and mountain rescue, from open data that is refreshed daily',
  overview: '# Atlas\n\nNeeds a tile server.',
  tier: 'Community',
  status: 'Active',
  transport: 'sse',
  tools: ['find_route', 'elevation'],
  tool_definitions: [{ name: 'find_route', inputSchema: { type: 'object' } }],
  image: 'ghcr.io/example/atlas:1.4.0',
  target_port: 8080,
  proxy_port: 9090,
  tags: ['maps', 'outdoor'],
  repository_url: 'https://github.com/example/atlas',
  metadata: { stars: 12, pulls: 340, last_updated: '2026-01-01T00:00:00Z' },
  custom_metadata: { team: 'field' },
  permissions: { network: { outbound: { allow_host: ['tiles.example'], allow_port: [443] } } },
  env_vars: [
    { name: 'ATLAS_KEY', description: 'Key of the tile server', required: true, secret: true },
    { name: 'ATLAS_ZOOM', description: 'Default zoom level', required: false, default: 12 },
  ],
  args: ['--units', 'metric'],
  docker_tags: ['1.4.0', '1.4'],
  provenance: { sigstore_url: 'tuf-repo-cdn.sigstore.dev', cert_issuer: 'https://token.actions.githubusercontent.com' },
  stateless: true,
}

const remote = {
  description: 'Shared notes of a team, hosted',
  tier: 'Official',
  status: 'Deprecated',
  transport: 'streamable-http',
  tools: ['list_notes'],
  url: 'https://notes.example/mcp',
  repository_url: 'https://gitlab.com/example/notes',
  headers: [{ name: 'X-Team', description: 'Which team', required: true, choices: ['red', 'blue'] }],
  oauth_config: { issuer: 'https://login.example', scopes: ['notes'] },
  env_vars: [{ name: 'NOTES_TOKEN', description: 'Token for the notes', required: false }],
}

describe('golden', () => {
  it('a container', () => {
    expect(JSON.parse(JSON.stringify(only(container)))).toEqual({
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: 'io.github.stacklok/atlas',
      title: 'Atlas',
      description: 'Maps, routes and elevation profiles for hikers, cyclists and mountain rescue, from open data that…',
      repository: { url: 'https://github.com/example/atlas', source: 'github' },
      version: '1.0.0',
      packages: [
        {
          registryType: 'oci',
          identifier: 'ghcr.io/example/atlas:1.4.0',
          transport: { type: 'sse', url: 'http://localhost:8080' },
          environmentVariables: [
            { name: 'ATLAS_KEY', description: 'Key of the tile server', isRequired: true, isSecret: true },
            { name: 'ATLAS_ZOOM', description: 'Default zoom level', default: '12' },
          ],
        },
      ],
      _meta: {
        'io.modelcontextprotocol.registry/publisher-provided': {
          'io.github.stacklok': {
            'ghcr.io/example/atlas:1.4.0': {
              status: 'Active',
              tier: 'Community',
              tools: ['find_route', 'elevation'],
              tags: ['maps', 'outdoor'],
              overview: `${container.description}\n\n# Atlas\n\nNeeds a tile server.`,
              tool_definitions: container.tool_definitions,
              metadata: container.metadata,
              custom_metadata: container.custom_metadata,
              permissions: container.permissions,
              args: container.args,
              provenance: container.provenance,
              docker_tags: container.docker_tags,
              proxy_port: 9090,
              stateless: true,
            },
          },
        },
      },
    })
  })

  it('a remote server', () => {
    expect(only(remote, 'remote_servers', 'com.example/notes')).toEqual({
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: 'com.example/notes',
      description: 'Shared notes of a team, hosted',
      repository: { url: 'https://gitlab.com/example/notes', source: 'gitlab' },
      version: '1.0.0',
      remotes: [
        {
          type: 'streamable-http',
          url: 'https://notes.example/mcp',
          headers: [{ name: 'X-Team', description: 'Which team', isRequired: true, choices: ['red', 'blue'] }],
        },
      ],
      _meta: {
        'io.modelcontextprotocol.registry/publisher-provided': {
          'io.github.stacklok': {
            'https://notes.example/mcp': {
              status: 'Deprecated',
              tier: 'Official',
              tools: ['list_notes'],
              oauth_config: remote.oauth_config,
              env_vars: remote.env_vars,
            },
          },
        },
      },
    })
  })

  it('the least that is possible, as design document 003 prints it', () => {
    const { documents, problems } = convert({ servers: [{ name: 'github-mcp', image: 'ghcr.io/github/mcp-server:latest' }] })
    expect(documents[0]).toMatchObject({
      name: 'io.github.stacklok/github-mcp',
      description: 'MCP server github-mcp',
      packages: [{ registryType: 'oci', identifier: 'ghcr.io/github/mcp-server:latest', transport: { type: 'stdio' } }],
    })
    expect(JSON.stringify(documents[0]?.['_meta'])).toContain('{"ghcr.io/github/mcp-server:latest":{"status":"active"}}')
    expect(problems).toEqual([
      {
        entry: '/servers/0',
        name: 'github-mcp',
        effect: 'warning',
        problems: [{ pointer: '/description', message: 'is missing: "MCP server github-mcp" is shown' }],
      },
    ])
  })
})

describe('details', () => {
  it('a description of 100 characters is whole, one more is cut where a word ends', () => {
    const hundred = `${'x'.repeat(95)} yyyy`
    expect(only({ ...container, description: hundred })?.['description']).toBe(hundred)
    expect(only({ ...container, description: `${hundred}y` })?.['description']).toBe(`${'x'.repeat(95)}…`)
    expect(only({ ...container, description: `${'x'.repeat(94)} yyyy zz` })?.['description']).toBe(`${'x'.repeat(94)} yyyy…`)
  })

  it('a name of its own wins over the key, and gets the namespace only if it has none', () => {
    expect(only({ ...container, name: 'com.example/atlas' })?.['name']).toBe('com.example/atlas')
    expect(only({ ...container, name: 'other' })?.['name']).toBe('io.github.stacklok/other')
  })

  it('http transports without a port are on localhost', () => {
    const { target_port: _, ...portless } = container
    expect(only(portless)?.['packages']).toMatchObject([{ transport: { type: 'sse', url: 'http://localhost' } }])
  })

  it('an overview that holds the description already is not doubled; a short description adds none', () => {
    const overview = `About: ${container.description}`
    expect(JSON.stringify(only({ ...container, overview }))).toContain(JSON.stringify({ overview }).slice(1, -1))
    expect(JSON.stringify(only(remote, 'remote_servers'))).not.toContain('overview')
  })

  it.each([
    ['repository_url', 'javascript:alert(1)', 'repository', 'must be an http or https URL: the repository is left out'],
    ['title', 'Atlas\u202e', 'title', 'must not contain control or bidirectional characters: the title is left out'],
  ])('leaves out a %s that would mislead people', (member, value, left, message) => {
    const { documents, problems } = convert({ servers: { atlas: { ...container, [member]: value } } })
    expect(documents[0]).not.toHaveProperty(left)
    expect(problems[0]?.problems).toContainEqual({ pointer: `/${member}`, message })
  })

  it('a repository that is no URI is left out with a warning', () => {
    const { documents, problems } = convert({ servers: { atlas: { ...container, repository_url: 'see wiki' } } })
    expect(documents[0] && 'repository' in documents[0]).toBe(false)
    expect(problems[0]?.problems[0]?.pointer).toBe('/repository_url')
  })

  it('is ordered by name; the second of one name is dropped; bad ones are reported with the file', () => {
    const { documents, problems } = convert({
      servers: { zoo: container, atlas: container, bad: { image: 1 } },
      remote_servers: { zoo: remote },
    })
    expect(documents.map((document) => document['name'])).toEqual(['io.github.stacklok/atlas', 'io.github.stacklok/zoo'])
    expect(problems.map(({ entry, effect }) => [entry, effect])).toEqual([
      ['/servers/bad', 'dropped'],
      ['/remote_servers/zoo', 'dropped'],
    ])
  })

  it('members of groups appear only when asked for', () => {
    const file = { servers: {}, groups: [{ name: 'kit', servers: { atlas: container } }] }
    expect([convert(file).documents.length, convert(file, true).documents.length]).toEqual([0, 1])
  })
})

it('whatever is read converts to documents that the wrapper format takes', () => {
  const words = fc.string({ unit: fc.constantFrom('a', 'Z', ' ', '.', '🌊', '\n'), maxLength: 130 })
  const server = fc.record(
    {
      image: fc.constantFrom('a', 'ghcr.io/a/b:1', '__proto__'),
      url: fc.constantFrom('https://h/x', 'http://h'),
      description: words,
      overview: words,
      title: words,
      transport: fc.constantFrom('sse', 'streamable-http', 'stdio'),
      target_port: fc.integer({ min: 1, max: 65_535 }),
      repository_url: words,
      env_vars: fc.array(fc.record({ name: fc.constantFrom('A', 'B'), default: fc.oneof(fc.boolean(), fc.integer(), words) })),
      tags: fc.array(fc.constantFrom('db', 'web')),
    },
    { requiredKeys: [] },
  )
  const key = fc.constantFrom('atlas', 'notes', 'a.b/c', 'x_y', 'UPPER', '-bad', '__proto__')
  fc.assert(
    fc.property(fc.dictionary(key, server), fc.dictionary(key, server), (servers, remotes) => {
      const file = { servers, remote_servers: remotes }
      const { documents } = convert(file)
      const read = readToolhiveRegistry(file)
      expect(documents.length).toBe(new Set(read.servers.map((entry) => entry.key)).size)
      expect(readUpstreamRegistry(JSON.parse(JSON.stringify(writeUpstreamRegistry(documents, '2026-01-01T00:00:00Z')))).documents).toEqual(
        JSON.parse(JSON.stringify(documents)),
      )
    }),
  )
})
