import { describe, expect, it } from 'vitest'
import type { Json } from './catalog-entry.ts'
import { readUpstreamRegistry, writeUpstreamRegistry } from './upstream-registry.ts'

const notes = { name: 'com.example/notes', description: 'Notes', version: '1.0.0', 'x-own': [1] }
const extended = (block: Json, publisher = 'io.github.stacklok') => ({
  ...notes,
  name: 'com.example/extended',
  _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { [publisher]: block } },
})

describe('the wrapper format', () => {
  it('comes back as it was written, documents untouched', () => {
    const file = writeUpstreamRegistry([notes, { ...notes, version: '2.0.0' }], '2026-01-01T00:00:00Z')
    const registry = readUpstreamRegistry(file, { strict: true })
    expect(registry).toEqual({
      version: '1.0.0',
      lastUpdated: '2026-01-01T00:00:00Z',
      documents: [notes, { ...notes, version: '2.0.0' }],
      problems: [],
    })
    expect(registry.documents[0]).toBe(notes)
  })

  it('drops a bad document alone, with all that is wrong with it', () => {
    const long = { ...notes, name: 'com.example/long', description: 'd'.repeat(101), version: 'latest' }
    const registry = readUpstreamRegistry({ data: { servers: [notes, long, 7, notes, { ...notes, name: 'com.example/last' }] } })
    expect(registry.documents.map((document) => document['name'])).toEqual(['com.example/notes', 'com.example/last'])
    expect(
      registry.problems.map(({ entry, name, effect, problems }) => [entry, name, effect, problems.map((problem) => problem.pointer)]),
    ).toEqual([
      ['/data/servers/1', 'com.example/long', 'dropped', ['/description', '/version']],
      ['/data/servers/2', undefined, 'dropped', ['']],
      ['/data/servers/3', 'com.example/notes', 'dropped', ['/version']],
    ])
  })

  it.each([null, [], {}, { data: {} }, { data: { servers: {} } }])('%j has no documents and a problem', (file) => {
    const registry = readUpstreamRegistry(file)
    expect([registry.documents.length, registry.problems.length]).toEqual([0, 1])
  })

  it('asks for version and time when strict', () => {
    const pointers = (file: object) =>
      readUpstreamRegistry(file, { strict: true }).problems.flatMap((entry) => entry.problems.map((problem) => problem.pointer))
    expect(pointers({ data: { servers: [] } })).toEqual(['/version', '/meta'])
    expect(pointers({ version: '1', meta: { last_updated: 'x' }, data: { servers: [] } })).toEqual(['/version', '/meta/last_updated'])
  })
})

describe('extensions', () => {
  const problemsOf = (document: object) =>
    readUpstreamRegistry({ data: { servers: [document] } }).problems.flatMap((entry) =>
      entry.problems.map((problem) => `${problem.pointer.split('publisher-provided')[1]} ${problem.message}`),
    )

  it('of every kind pass', () => {
    const block = {
      status: 'active',
      tier: 'Official',
      tools: ['a_b'],
      tags: ['db', 'a1'],
      overview: '# X',
      tool_definitions: [{ name: 'a_b', extra: 1 }],
      metadata: {
        stars: 3,
        last_updated: '2026-01-01T00:00:00Z',
        kubernetes: {
          kind: 'MCPServer',
          namespace: 'n',
          name: 'x',
          uid: '0b1f4c9e-1111-4222-8333-444455556666',
          image: 'i',
          transport: 'sse',
        },
      },
      custom_metadata: { any: [] },
      proxy_port: 8080,
      stateless: true,
      args: ['--x'],
      docker_tags: ['1', '2'],
      provenance: { sigstore_url: 's', attestation: { predicate_type: 'p' } },
      permissions: {
        network: { outbound: { allow_host: ['.example.com', 'h'], allow_port: [443], insecure_allow_all: false } },
        read: ['/a/b'],
        write: [],
        privileged: false,
      },
      oauth_config: { issuer: 'https://i', scopes: ['s'], use_pkce: true, oauth_params: { a: 'b' }, callback_port: 1 },
      env_vars: [{ name: 'A_1', required: true, secret: false, default: 'x' }],
    }
    expect(problemsOf(extended({ 'ghcr.io/x/y:1': block }))).toEqual([])
  })

  it.each<[Json, string]>([
    ['x', '/io.github.stacklok must be an object'],
    [{ k: 1 }, '/io.github.stacklok/k must be an object'],
    [{ k: {} }, '/io.github.stacklok/k/status is required'],
    [{ k: { status: 'gone' } }, '/io.github.stacklok/k/status must be one of active, deprecated, Active, Deprecated, not "gone"'],
    [
      { k: { status: 'active', tags: ['a'] } },
      '/io.github.stacklok/k/tags/0 must be two or more lower-case letters, digits, underscores and hyphens',
    ],
    [{ k: { status: 'active', proxy_port: 0 } }, '/io.github.stacklok/k/proxy_port must be at least 1'],
    [{ k: { status: 'active', metadata: { kubernetes: { uid: 'x' } } } }, '/io.github.stacklok/k/metadata/kubernetes/uid must be a UUID'],
    [
      { k: { status: 'active', permissions: { network: { outbound: { allow_host: ['a b'] } } } } },
      '/io.github.stacklok/k/permissions/network/outbound/allow_host/0 must be a host name or .suffix',
    ],
  ])('%j', (block, problem) => {
    expect(problemsOf(extended(block))).toEqual([problem])
  })

  it('that are wrong only warn, unless strict; other publishers may write any object', () => {
    const file = writeUpstreamRegistry([extended({ k: {} })], '2026-01-01T00:00:00Z')
    const outcome = (strict: boolean) => [
      readUpstreamRegistry(file, { strict }).documents.length,
      readUpstreamRegistry(file, { strict }).problems[0]?.effect,
    ]
    expect([outcome(false), outcome(true)]).toEqual([
      [1, 'warning'],
      [0, 'dropped'],
    ])
    expect(problemsOf(extended({ k: {} }, 'com.example'))).toEqual([])
    expect(problemsOf(extended('x', 'com.example'))).toEqual(['/com.example must be an object'])
  })
})
