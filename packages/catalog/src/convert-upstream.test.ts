import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from './catalog-entry.ts'
import { convertToolhiveRegistry } from './convert-toolhive.ts'
import { convertToToolhiveRegistry, toToolhiveServer } from './convert-upstream.ts'
import { readToolhiveRegistry } from './toolhive-registry.ts'

const time = '2026-01-01T00:00:00Z'
const base = { name: 'com.example/atlas', description: 'Maps and routes', version: '1.0.0' }
const image = { registryType: 'oci', identifier: 'ghcr.io/example/atlas:1.4.0', transport: { type: 'stdio' } }

describe('golden', () => {
  it('a document with an image among other packages', () => {
    const document: JsonObject = {
      ...base,
      title: 'Atlas',
      repository: { url: 'https://github.com/example/atlas', source: 'github' },
      packages: [
        { registryType: 'npm', identifier: '@example/atlas', version: '1.4.0', transport: { type: 'stdio' } },
        {
          ...image,
          transport: { type: 'streamable-http', url: 'http://localhost:8080/mcp' },
          packageArguments: [
            { type: 'named', name: '--units', value: 'metric' },
            { type: 'positional', valueHint: 'dir', value: '/data' },
            { type: 'named', name: '--verbose' },
          ],
          environmentVariables: [{ name: 'ATLAS_KEY', description: 'Key', isRequired: true, isSecret: true }],
          runtimeArguments: [
            { type: 'named', name: '-e', value: 'MODE=fast' },
            {
              type: 'named',
              name: '--env',
              value: 'TOKEN={token}',
              isRequired: false,
              variables: { token: { description: 'Token', isRequired: true, isSecret: true, default: 't' } },
            },
            { type: 'named', name: '-e', value: 'REGION={region}', variables: { region: { isRequired: true } } },
            { type: 'named', name: '-v', value: 'a=b' },
            { type: 'named', name: '-e', value: 'NOTHING' },
          ],
        },
      ],
      _meta: {
        'io.modelcontextprotocol.registry/publisher-provided': {
          'io.github.stacklok': {
            other: { status: 'deprecated', tier: 'Community' },
            'ghcr.io/example/atlas:1.4.0': {
              status: 'active',
              tier: 'Official',
              tools: ['find_route'],
              tags: ['maps'],
              args: ['ignored'],
              proxy_port: 9090,
              docker_tags: ['1'],
            },
          },
        },
      },
    }
    expect(toToolhiveServer(document)).toEqual({
      ok: true,
      kind: 'container',
      key: 'com.example/atlas',
      server: {
        title: 'Atlas',
        description: 'Maps and routes',
        tier: 'Official',
        status: 'Active',
        tools: ['find_route'],
        repository_url: 'https://github.com/example/atlas',
        tags: ['maps'],
        proxy_port: 9090,
        image: 'ghcr.io/example/atlas:1.4.0',
        transport: 'streamable-http',
        target_port: 8080,
        env_vars: [
          { name: 'ATLAS_KEY', description: 'Key', required: true, secret: true },
          { name: 'MODE', description: '', required: false, default: 'fast' },
          { name: 'TOKEN', description: 'Token', required: false, secret: true, default: 't' },
          { name: 'REGION', description: '', required: true },
        ],
        args: ['--units', 'metric', '/data', '--verbose'],
        docker_tags: ['1'],
      },
    })
  })

  it('a document with remotes: the first', () => {
    const remotes = [
      { type: 'sse', url: 'https://a.example/sse', headers: [{ name: 'X-Key', isSecret: true, choices: ['a'] }] },
      { type: 'streamable-http', url: 'https://b.example/mcp' },
    ]
    expect(toToolhiveServer({ ...base, name: 'io.github.stacklok/atlas', remotes })).toEqual({
      ok: true,
      kind: 'remote',
      key: 'atlas',
      server: {
        description: 'Maps and routes',
        tier: 'Community',
        status: 'Active',
        tools: [],
        url: 'https://a.example/sse',
        transport: 'sse',
        headers: [{ name: 'X-Key', description: '', required: false, secret: true, choices: ['a'] }],
      },
    })
  })
})

it.each<[string, JsonObject, string]>([
  [
    'no image',
    {
      ...base,
      packages: [
        { ...image, registryType: 'npm' },
        { ...image, registryType: 'pypi' },
      ],
    },
    "server 'com.example/atlas' has no OCI packages (found: [npm pypi])",
  ],
  ['two images', { ...base, packages: [image, image] }, "server 'com.example/atlas' has 2 OCI packages, and ToolHive's format takes one"],
  ['nothing', base, "server 'com.example/atlas' has neither packages nor remotes"],
])('%s does not convert', (_, document, message) => {
  expect(toToolhiveServer(document)).toEqual({ ok: false, message })
})

it('the oldest schema is read in its own spelling', () => {
  const pack = {
    registry_type: 'oci',
    identifier: 'a:1',
    version: '1',
    transport: { type: 'stdio' },
    environment_variables: [{ name: 'KEY', is_required: true, is_secret: true }],
    runtime_arguments: [{ type: 'named', name: '-e', value: 'T={my_token}', variables: { my_token: { is_secret: true } } }],
  }
  const $schema = 'https://static.modelcontextprotocol.io/schemas/2025-07-09/server.schema.json'
  expect(toToolhiveServer({ ...base, $schema, packages: [pack] })).toMatchObject({
    server: {
      image: 'a:1',
      env_vars: [
        { name: 'KEY', required: true, secret: true },
        { name: 'T', secret: true },
      ],
    },
  })
  expect(toToolhiveServer({ ...base, packages: [pack] }).ok).toBe(false)
})

it('of several versions the highest is taken; what does not convert is reported alone', () => {
  const documents = ['1.9.0', '1.10.0', '1.2.0'].map((version) => ({ ...base, version, title: version, packages: [image] }))
  const { registry, problems } = convertToToolhiveRegistry([...documents, { ...base, name: 'com.example/none' }], time)
  expect(registry).toMatchObject({ last_updated: time, servers: { 'com.example/atlas': { title: '1.10.0' } }, remote_servers: {} })
  expect(problems).toMatchObject([{ entry: '/3', name: 'com.example/none', effect: 'dropped' }])
})

describe('there and back', () => {
  const words = (max: number) =>
    fc
      .array(fc.constantFrom('map', 'route', 'of', 'a', 'mountain,', 'daily.', 'elevation'), { minLength: 1, maxLength: max, size: 'max' })
      .map((all) => all.join(' '))
  const variable = fc.record(
    { name: fc.constantFrom('A', 'B'), description: words(3), required: fc.boolean(), secret: fc.constant(true), default: words(2) },
    { requiredKeys: ['name', 'description', 'required'] },
  )
  const shared = {
    title: words(3),
    description: words(60).map((text) => text.slice(0, 480).trim()), // the format's own limit is 500
    tier: fc.constantFrom('Official', 'Community'),
    status: fc.constantFrom('Active', 'Deprecated'),
    tools: fc.uniqueArray(fc.constantFrom('x', 'y'), { minLength: 1 }),
    tags: fc.uniqueArray(fc.constantFrom('db', 'web'), { minLength: 1 }),
    overview: words(5).map((text) => `# ${text}\n\nMore.`),
    repository_url: fc.constant('https://github.com/example/atlas'),
    proxy_port: fc.integer({ min: 1, max: 65_535 }),
    stateless: fc.boolean(),
    metadata: fc.record({ stars: fc.nat() }),
  }
  const requiredKeys = ['description', 'tier', 'status', 'tools'] as const
  const container = fc.record(
    {
      ...shared,
      image: fc.constantFrom('a:1', 'ghcr.io/a/b:2'),
      transport: fc.constantFrom('stdio', 'sse'),
      env_vars: fc.array(variable, { minLength: 1 }),
      args: fc.constant(['-x']),
    },
    { requiredKeys: [...requiredKeys, 'image', 'transport'] },
  )
  const remote = fc.record(
    {
      ...shared,
      url: fc.constant('https://h/x'),
      transport: fc.constantFrom('sse', 'streamable-http'),
      headers: fc.array(variable, { minLength: 1 }),
      oauth_config: fc.record({ issuer: fc.constant('i') }),
    },
    { requiredKeys: [...requiredKeys, 'url', 'transport'] },
  )

  it('a ToolHive registry is what it was', () => {
    const key = fc.constantFrom('atlas', 'notes', 'com.example/zoo')
    fc.assert(
      fc.property(fc.dictionary(key, container), fc.dictionary(fc.constantFrom('far', 'com.example/far'), remote), (servers, remotes) => {
        const file = JSON.parse(JSON.stringify({ version: '1.0.0', last_updated: time, servers, remote_servers: remotes }))
        const { documents, problems } = convertToolhiveRegistry(readToolhiveRegistry(file))
        expect(problems).toEqual([])
        expect(convertToToolhiveRegistry(documents, time)).toEqual({ registry: file, problems: [] })
      }),
    )
  })

  it('a description that was cut is whole again, whether or not there is an overview', () => {
    const description = `${'Plans walks '.repeat(12)}and returns`
    for (const overview of [undefined, '# Walks\n\nMore.']) {
      const server = { image: 'a:1', description, ...(overview === undefined ? {} : { overview }) }
      const { documents } = convertToolhiveRegistry(readToolhiveRegistry({ servers: { walks: server } }))
      const back = convertToToolhiveRegistry(documents, time).registry['servers']
      expect(String(documents[0]?.['description']).endsWith('…')).toBe(true)
      expect(back).toMatchObject({ walks: server })
      expect(JSON.stringify(back).includes('overview')).toBe(overview !== undefined)
    }
  })

  it('a description too long for the format stays cut', () => {
    const documents = convertToolhiveRegistry(
      readToolhiveRegistry({ servers: { walks: { image: 'a:1', description: 'walk '.repeat(120) } } }),
    ).documents
    const [document] = documents
    expect(convertToToolhiveRegistry(documents, time).registry).toMatchObject({
      servers: { walks: { description: document?.['description'] } },
    })
  })

  it('an upstream document stays the same from the first return on', () => {
    fc.assert(
      fc.property(container, (server) => {
        const once = convertToolhiveRegistry(readToolhiveRegistry({ servers: { atlas: server } })).documents
        const again = convertToolhiveRegistry(readToolhiveRegistry(convertToToolhiveRegistry(once, time).registry)).documents
        expect(again).toEqual(once)
      }),
    )
  })
})
