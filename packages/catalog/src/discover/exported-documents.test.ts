import { expect, it } from 'vitest'
import { knownServers } from './entry/known-servers.ts'
import { annotate, serverOf, source } from './testing/decision-row.ts'
import { annotation, discoverWorld, exportWorld, mcp } from './testing/export-world.ts'

const documentsOf = (world: ReturnType<typeof exportWorld>) => discoverWorld(world).entries.map(({ text }) => JSON.parse(text))

it('takes name and description from the resource, and names it and the origin of each remote [000-052] [000-093] [001-036]', () => {
  const [document] = documentsOf(exportWorld())
  expect(document).toMatchObject({ name: 'dev.stacklok.toolhive/mcp-servers.github-mcp', description: 'GitHub MCP' })
  expect(document._meta['dev.stacklok.toolhive/export']).toEqual({
    resources: [{ kind: 'MCPServer', namespace: 'mcp-servers', name: 'github-mcp' }],
    remotes: [
      {
        url: 'https://mcp.company.com/github',
        origin: { kind: 'HTTPRoute', namespace: 'mcp-servers', name: 'r1' },
        gateway: 'external-gateway',
      },
    ],
  })
})

it('leaves every member of a known entry as it was and appends the remote [000-014] [000-020] [000-037] [000-112] [000-127]', () => {
  const world = exportWorld()
  const more = { remotes: [{ type: 'sse', url: 'https://inside.co/' }], _meta: { 'x.co/y': { z: 1 } }, title: 'T', unknown: [1] }
  const origin = source('io.github.stacklok/github', '1.2.0', more)
  world.known = knownServers([[origin]])
  const [document] = documentsOf(world)
  const { remotes, _meta, ...rest } = JSON.parse(origin.text)
  expect(document).toMatchObject({ ...rest, _meta })
  expect(document.remotes).toEqual([...remotes, { type: 'sse', url: 'https://mcp.company.com/github' }])
  expect(Object.keys(document._meta)).toEqual(['x.co/y', 'dev.stacklok.toolhive/export'])
})

it('keeps the claims of a known entry in every version of its copy', () => {
  const world = exportWorld()
  const claims = { team: 'platform' }
  const old = source('a.co/x', '0.9.0', { packages: [] }, claims)
  world.known = knownServers([[source('a.co/x', '1.0.0', {}, claims), old]])
  const { entries } = discoverWorld(world)
  expect(entries.map((entry) => [entry.version, entry.claims])).toEqual([
    ['1.0.0', claims],
    ['0.9.0', claims],
  ])
  expect(entries[1]?.text).toBe(old.text)
})

it.each([
  ['operator mode keeps the description of the source', 'operator', 'GitHub from the source'],
  ['server mode takes that of the annotation [001-027]', 'server', 'GitHub MCP'],
] as const)('%s', (_, mode, description) => {
  const world = exportWorld()
  world.known = knownServers([[source('a.co/x', '1.0.0')]])
  world.options = { ...world.options, mode }
  expect(documentsOf(world)[0].description).toBe(description)
})

it('carries tier, title, icon, tag and tools of annotations in server mode only [000-126] [001-029]', () => {
  const world = exportWorld()
  annotate(serverOf(world), {
    'registry-tier': 'Official',
    'registry-title': 'Git Hub',
    'registry-icon': 'https://x.co/i.png',
    'registry-category': 'code',
    tools: '["get_issue"]',
    'tool-definitions': '[{"name":"get_issue"}]',
  })
  const extensions = (document: Record<string, Record<string, Record<string, object>>>) =>
    Object.values(document['_meta']?.['io.modelcontextprotocol.registry/publisher-provided']?.['io.github.stacklok'] ?? {})[0]
  const [plain] = documentsOf(world)
  expect(plain).not.toHaveProperty('title')
  expect(plain).not.toHaveProperty('icons')
  expect(Object.keys(extensions(plain) ?? {})).toEqual(['status', 'metadata'])
  world.options = { mode: 'server', crossNamespaceGateway: 'accepted' }
  const [rich] = documentsOf(world)
  expect(rich).toMatchObject({ title: 'Git Hub', icons: [{ src: 'https://x.co/i.png' }] })
  expect(extensions(rich)).toMatchObject({
    tier: 'Official',
    tags: ['code'],
    tools: ['get_issue'],
    tool_definitions: [{ name: 'get_issue' }],
    metadata: { kubernetes: { kind: 'MCPServer', namespace: 'mcp-servers', name: 'github-mcp', transport: 'sse' } },
  })
})

it('keeps the whole of a long description as overview', () => {
  const world = exportWorld()
  const long = 'word '.repeat(1_000).trim()
  annotate(serverOf(world), { 'registry-description': long })
  const [document] = documentsOf(world)
  expect([...document.description].length).toBeLessThanOrEqual(100)
  expect(JSON.stringify(document._meta)).toContain(long)
})

it('makes a description where server mode has none', () => {
  const world = exportWorld()
  world.options = { mode: 'server', crossNamespaceGateway: 'accepted' }
  delete serverOf(world).metadata.annotations[annotation('registry-description')]
  expect(documentsOf(world)[0].description).toBe('MCP server mcp-servers/github-mcp')
})

it('names the missing filter, and the missing description, in its warnings', () => {
  const world = exportWorld()
  world.routes[0].spec.rules[0].filters = []
  world.servers.push(mcp('MCPServer', 'bare', { image: 'y' }))
  world.servers[1].metadata.annotations[annotation('registry-url')] = 'https://x.co/'
  const messages = discoverWorld(world).warnings.map(({ message }) => message)
  expect(messages[0]).toContain('URLRewrite with path.type ReplacePrefixMatch and replacePrefixMatch /')
  expect(messages[1]).toContain('set toolhive.stacklok.dev/registry-description')
})
