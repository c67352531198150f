import { describe, expect, it } from 'vitest'
import { readToolhiveRegistry } from './toolhive-registry.ts'

const atlas = {
  description: 'Looks up maps and routes for hikers',
  tier: 'Community',
  status: 'Active',
  transport: 'stdio',
  tools: ['find_route'],
  image: 'ghcr.io/example/atlas:1.4.0',
}
const notes = {
  description: 'Shared notes of a team, hosted',
  tier: 'Official',
  status: 'Active',
  transport: 'streamable-http',
  tools: ['list_notes'],
  url: 'https://notes.example/mcp',
}
const head = { version: '1.0.0', last_updated: '2026-01-01T00:00:00Z' }

const read = (file: unknown, strict = false) => readToolhiveRegistry(file, { strict })
const keys = (file: unknown, strict = false) => read(file, strict).servers.map((server) => `${server.kind} ${server.key}`)

describe('a file', () => {
  it('is read in the order of its keys, members untouched', () => {
    const file = { ...head, servers: { zebra: atlas, atlas }, remote_servers: { notes } }
    const registry = read(file, true)
    expect(registry.problems).toEqual([])
    expect(registry.servers.map((server) => server.pointer)).toEqual(['/servers/atlas', '/servers/zebra', '/remote_servers/notes'])
    expect(registry.servers[0]?.server).toBe(atlas)
    expect(registry).toMatchObject({ version: '1.0.0', lastUpdated: '2026-01-01T00:00:00Z' })
  })

  it('may list its servers, and needs no more than name and image or url (design document 003)', () => {
    const file = {
      servers: [
        { name: 'github-mcp', image: 'ghcr.io/github/mcp-server:latest' },
        { name: 'notes', url: 'https://notes.example/mcp' },
      ],
    }
    expect(keys(file)).toEqual(['container github-mcp', 'remote notes'])
    expect(read(file).problems).toEqual([])
    expect(read(file, true).problems.flatMap((problem) => problem.problems)).toEqual([
      { pointer: '/version', message: 'is required' },
      { pointer: '/last_updated', message: 'is required' },
      { pointer: '', message: 'must be an object with one member per server' },
    ])
  })

  it('may be empty', () => {
    expect(read({ servers: {} })).toEqual({ servers: [], problems: [] })
  })

  it.each([null, [], 'x', 7])('that is %j has one problem and no servers', (file) => {
    const registry = read(file)
    expect(registry.servers).toEqual([])
    expect(registry.problems).toEqual([{ entry: '', effect: 'warning', problems: [{ pointer: '', message: 'must be an object' }] }])
  })

  it('without any servers member says so', () => {
    expect(read({}).problems[0]?.problems).toEqual([{ pointer: '/servers', message: 'is required' }])
    expect(read({ remote_servers: { notes } }).problems).toEqual([])
  })

  it('keeps the servers of groups apart', () => {
    const groups = [{ name: 'field-kit', servers: { atlas }, remote_servers: { notes } }, { servers: { lost: atlas } }, 3]
    const registry = read({ ...head, servers: {}, groups })
    expect(registry.servers.map((server) => [server.group, server.pointer])).toEqual([
      ['field-kit', '/groups/0/servers/atlas'],
      ['field-kit', '/groups/0/remote_servers/notes'],
    ])
    expect(registry.problems.map((problem) => problem.entry)).toEqual(['/groups/1', '/groups/2'])
  })
})

describe('a bad entry', () => {
  it.each<[string, unknown, string]>([
    ['no image', { description: 'x' }, '/image'],
    ['not an object', 'x', ''],
    ['spaces in the image', { image: 'a b' }, '/image'],
    ['a wrong type', { image: 'a', env_vars: 'X=1' }, '/env_vars'],
    ['a wrong transport', { image: 'a', transport: 'http' }, '/transport'],
    ['a port out of range', { image: 'a', target_port: 70_000 }, '/target_port'],
    ['a URL of another scheme', { url: 'ftp://h' }, '/url'],
    ['a name that is none', { image: 'a', name: 'a/b/c' }, '/name'],
    ['nesting', { image: 'a', custom_metadata: JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) }, ''],
  ])('with %s goes alone', (_, bad, pointer) => {
    const registry = read({ servers: { atlas, bad, zebra: atlas } })
    expect(registry.servers.map((server) => server.key)).toEqual(['atlas', 'zebra'])
    expect(registry.problems).toHaveLength(1)
    expect(registry.problems[0]).toMatchObject({ entry: '/servers/bad', name: 'bad', effect: 'dropped' })
    expect(registry.problems[0]?.problems.map((problem) => problem.pointer)).toEqual([pointer])
  })

  it('is reported shortly however long its key is', () => {
    const registry = read({ servers: { ['k'.repeat(100_000)]: atlas, ['__proto__x']: atlas } })
    expect(JSON.stringify(registry.problems).length).toBeLessThan(1_500)
    expect(registry.problems).toHaveLength(2)
  })
})

describe('the full schema', () => {
  const problems = (server: object, kind: 'servers' | 'remote_servers' = 'servers', key = 'atlas') =>
    read({ ...head, servers: {}, [kind]: { [key]: server } }, true).problems.flatMap((entry) =>
      entry.problems.map((problem) => `${problem.pointer} ${problem.message}`),
    )

  it('passes complete entries', () => {
    expect(problems(atlas)).toEqual([])
    expect(problems(notes, 'remote_servers')).toEqual([])
    expect(problems({ ...atlas, image: `ghcr.io:443/example/atlas:1.4.0@sha256:${'a'.repeat(64)}` })).toEqual([])
  })

  it.each<[object, string]>([
    [{ description: 'short' }, '/description must be at least 10 characters long'],
    [{ description: 'd'.repeat(501) }, '/description must be at most 500 characters long'],
    [{ tier: 'Gold' }, '/tier must be one of Official, Community, not "Gold"'],
    [{ status: 'active' }, '/status must be one of Active, Deprecated, not "active"'],
    [{ tools: [] }, '/tools must have at least 1 items'],
    [{ tools: ['a', 'a'] }, '/tools/1 repeats "a"'],
    [{ tools: ['a b'] }, '/tools/0 must consist of letters, digits, underscores and hyphens'],
    [{ tags: [] }, '/tags must have at least 1 items'],
    [{ image: '/x' }, '/image must be an image reference'],
    [{ url: 'https://h' }, '/url is not a member of this format'],
    [{ env_vars: [{ name: '1A', description: 'five!', required: true }] }, '/env_vars/0/name must be a name of an environment variable'],
    [{ env_vars: [{ name: 'A', description: 'four', required: true }] }, '/env_vars/0/description must be at least 5 characters long'],
    [{ permissions: { read: ['relative'] } }, '/permissions/read/0 must be an absolute path'],
    [
      { permissions: { network: { outbound: { allow_port: [0] } } } },
      '/permissions/network/outbound/allow_port must be an array of ports from 1 to 65535',
    ],
    [{ metadata: { last_updated: 'today' } }, '/metadata/last_updated must be an RFC 3339 timestamp'],
  ])('%j', (change, problem) => {
    expect(problems({ ...atlas, ...change })).toEqual([problem])
  })

  it('asks more of remotes and keys', () => {
    expect(problems({ ...notes, transport: 'stdio' }, 'remote_servers')).toEqual([
      '/transport must be one of sse, streamable-http, not "stdio"',
    ])
    expect(problems({ ...notes, headers: [{ name: 'X Y', description: 'd', required: false }] }, 'remote_servers')).toEqual([
      '/headers/0/name must be a header name',
    ])
    expect(problems(atlas, 'servers', 'ab')).toEqual([' its key must be three or more lower-case letters, digits and hyphens'])
  })
})
