import { describe, it } from 'vitest'
import { knownServers } from './entry/known-servers.ts'
import {
  annotate,
  at,
  checkRow,
  direct,
  first,
  NAME,
  type Row,
  ruleOf,
  SERVER_MODE,
  serverOf,
  source,
  USUAL,
} from './testing/decision-row.ts'
import { gateway, httpRoute, mcp, proxyService } from './testing/export-world.ts'

const DIRECT: readonly Row[] = [
  [
    'direct URL beside a route [000-088] [001-054]',
    (w) => annotate(serverOf(w), { 'registry-url': 'https://direct.co/x' }),
    at('https://direct.co/x'),
    ['ConflictingConfiguration'],
  ],
  [
    'direct URL alone',
    (w) => {
      w.routes = []
      annotate(serverOf(w), { 'registry-url': 'https://direct.co/x' })
    },
    at('https://direct.co/x'),
    [],
  ],
  ['server mode: URL without export [001-024]', direct({ 'registry-url': 'https://direct.co/x' }), [], []],
  [
    'server mode: URL without export, with a route',
    (w) => {
      w.options = SERVER_MODE
      annotate(serverOf(w), { 'registry-url': 'https://direct.co/x' })
    },
    USUAL,
    [],
  ],
  ['server mode: export without URL [001-025]', direct({ 'registry-export': 'true' }), [], ['MissingRegistryURL']],
  [
    'server mode: export and URL [000-021] [000-053] [000-054] [001-020]',
    direct({ 'registry-export': 'true', 'registry-url': 'https://direct.co/x' }),
    at('https://direct.co/x'),
    [],
  ],
  ['server mode: export "TRUE" [001-023]', direct({ 'registry-export': 'TRUE', 'registry-url': 'https://direct.co/x' }), [], []],
  [
    'no description, unknown image',
    (w) => {
      w.routes = []
      serverOf(w).metadata.annotations = {}
      annotate(serverOf(w), { 'registry-url': 'https://direct.co/x' })
    },
    [],
    ['MissingDescription'],
  ],
  ['blank description', (w) => annotate(serverOf(w), { 'registry-description': ' \n' }), [], ['MissingDescription']],
  [
    'server mode: no description [001-028]',
    (w) => {
      w.options = SERVER_MODE
      serverOf(w).metadata.annotations = {}
    },
    USUAL,
    [],
  ],
  [
    'URL that is none, with a route [000-135]',
    (w) => annotate(serverOf(w), { 'registry-url': 'not a url' }),
    USUAL,
    ['InvalidRegistryURL'],
  ],
  ...(
    [
      ['empty', ''],
      ['relative', '/x'],
      ['javascript', 'javascript:alert(1)'],
      ['ftp', 'ftp://x.co/'],
      ['with a password', 'https://me:hunter2@x.co/'],
      ['with a user', 'https://me@x.co/'],
      ['with a wildcard', 'https://*.x.co/'],
      ['with a template', 'https://x.co/{tenant}'],
      ['with a fragment', 'https://x.co/#a'],
      ['with a space', 'https://x.co/a b'],
      ['not ASCII', 'https://x.co/ü'],
      ['200 KB', `https://x.co/${'a'.repeat(200_000)}`],
    ] as const
  ).map(
    ([title, url]): Row => [
      `URL ${title} [000-110] [000-135]`,
      direct({ 'registry-export': 'true', 'registry-url': url }),
      [],
      ['InvalidRegistryURL'],
    ],
  ),
  [
    'URL of a metadata address is listed [000-129]',
    direct({ 'registry-export': 'true', 'registry-url': 'http://169.254.169.254/x' }),
    at('http://169.254.169.254/x'),
    ['InsecureURL'],
  ],
  [
    'transport stdio [000-061]',
    (w) => {
      serverOf(w).spec = { image: 'x', transport: 'stdio' }
    },
    [`${NAME} streamable-http https://mcp.company.com/github`],
    [],
  ],
  [
    'transport stdio, proxyMode sse [000-061]',
    (w) => {
      serverOf(w).spec = { image: 'x', transport: 'stdio', proxyMode: 'sse' }
    },
    USUAL,
    [],
  ],
  [
    'no transport',
    (w) => {
      serverOf(w).spec = { image: 'x' }
    },
    [`${NAME} streamable-http https://mcp.company.com/github`],
    [],
  ],
  [
    'transport streamable-http [000-060]',
    (w) => {
      serverOf(w).spec.transport = 'streamable-http'
    },
    [`${NAME} streamable-http https://mcp.company.com/github`],
    [],
  ],
  [
    'an MCPRemoteProxy, sse [000-064] [000-105]',
    (w) => {
      w.proxies = [mcp('MCPRemoteProxy', 'p', { remoteUrl: 'https://far.co', transport: 'sse' })]
      annotate(first(w.proxies), { 'registry-url': 'https://direct.co/p', 'registry-description': 'P' })
      w.servers = []
      w.routes = []
    },
    ['dev.stacklok.toolhive/mcp-servers.p@1.0.0 sse https://direct.co/p'],
    [],
  ],
  [
    'an MCPRemoteProxy by a route [000-006]',
    (w) => {
      w.proxies = [mcp('MCPRemoteProxy', 'p', { remoteUrl: 'https://far.co' })]
      annotate(first(w.proxies), { 'registry-description': 'P' })
      w.services.push(proxyService('MCPRemoteProxy', 'p'))
      ruleOf(w).backendRefs[0].name = 'mcp-p-remote-proxy'
    },
    ['dev.stacklok.toolhive/mcp-servers.p@1.0.0 streamable-http https://mcp.company.com/github'],
    [],
  ],
  [
    'a VirtualMCPServer by a route',
    (w) => {
      w.virtuals = [mcp('VirtualMCPServer', 'v')]
      w.options = SERVER_MODE
      w.services.push(proxyService('VirtualMCPServer', 'v'))
      ruleOf(w).backendRefs[0].name = 'vmcp-v'
    },
    ['dev.stacklok.toolhive/mcp-servers.v@1.0.0 streamable-http https://mcp.company.com/github'],
    [],
  ],
]

const ENTRIES: readonly Row[] = [
  [
    'a known image [000-050]',
    (w) => {
      w.known = knownServers([[source('io.github.stacklok/github', '1.2.0')]])
    },
    ['io.github.stacklok/github@1.2.0 sse https://mcp.company.com/github'],
    [],
  ],
  [
    'a known image: all versions, the matched one with the remote',
    (w) => {
      const other = source('io.github.stacklok/github', '1.1.0', { packages: [] })
      w.known = knownServers([[other, source('io.github.stacklok/github', '1.2.0')]])
    },
    ['io.github.stacklok/github@1.2.0 sse https://mcp.company.com/github', 'io.github.stacklok/github@1.1.0'],
    [],
  ],
  [
    'a known image in two sources: the first',
    (w) => {
      w.known = knownServers([[source('b.co/x', '1.0.0')], [source('a.co/x', '1.0.0')]])
    },
    ['b.co/x@1.0.0 sse https://mcp.company.com/github'],
    [],
  ],
  [
    'a known image twice in one source: the lowest name',
    (w) => {
      w.known = knownServers([[source('b.co/x', '1.0.0'), source('a.co/x', '1.0.0')]])
    },
    ['a.co/x@1.0.0 sse https://mcp.company.com/github'],
    [],
  ],
  [
    'a known image that lists the remote already',
    (w) => {
      w.known = knownServers([[source('a.co/x', '1.0.0', { remotes: [{ type: 'sse', url: 'https://mcp.company.com/github' }] })]])
    },
    ['a.co/x@1.0.0 sse https://mcp.company.com/github'],
    [],
  ],
  [
    'a known image in two namespaces: one entry',
    (w) => {
      w.options = SERVER_MODE
      w.routes = []
      w.known = knownServers([[source('a.co/x', '1.0.0')]])
      w.servers.push(mcp('MCPServer', 'github-mcp', { image: 'ghcr.io/x/github:1' }, 'another'))
      for (const server of w.servers)
        annotate(server, { 'registry-export': 'true', 'registry-url': `https://${server.metadata.namespace}.co/` })
    },
    ['a.co/x@1.0.0 streamable-http https://another.co/ sse https://mcp-servers.co/'],
    [],
  ],
  [
    'a known image needs no description',
    (w) => {
      w.known = knownServers([[source('a.co/x', '1.0.0')]])
      serverOf(w).metadata.annotations = {}
    },
    ['a.co/x@1.0.0 sse https://mcp.company.com/github'],
    [],
  ],
  [
    'a known image with the digest pinned',
    (w) => {
      w.known = knownServers([[source('a.co/x', '1.0.0')]])
      serverOf(w).spec.image = `ghcr.io/x/github:1@sha256:${'0'.repeat(64)}`
    },
    ['a.co/x@1.0.0 sse https://mcp.company.com/github'],
    [],
  ],
  [
    'another tag of a known image',
    (w) => {
      w.known = knownServers([[source('a.co/x', '1.0.0')]])
      serverOf(w).spec.image = 'ghcr.io/x/github:2'
    },
    USUAL,
    [],
  ],
  [
    'claims on a known image are ignored',
    (w) => {
      w.known = knownServers([[source('a.co/x', '1.0.0')]])
      w.options = SERVER_MODE
      annotate(serverOf(w), { 'authz-claims': '{"team":"x"}' })
    },
    ['a.co/x@1.0.0 sse https://mcp.company.com/github'],
    ['ClaimsIgnored'],
  ],
  [
    'malformed claims',
    (w) => {
      w.options = SERVER_MODE
      annotate(serverOf(w), { 'authz-claims': '{"team":5}' })
    },
    [],
    ['InvalidClaims'],
  ],
  ['claims in operator mode', (w) => annotate(serverOf(w), { 'authz-claims': '{"team":"x"}' }), [], ['InvalidClaims']],
  ['a long description', (w) => annotate(serverOf(w), { 'registry-description': 'word '.repeat(1_000) }), USUAL, ['DescriptionTruncated']],
  [
    'registry-version',
    (w) => {
      w.options = SERVER_MODE
      annotate(serverOf(w), { 'registry-version': '2.1.0' })
    },
    [USUAL[0]?.replace('1.0.0', '2.1.0') ?? ''],
    [],
  ],
  [
    'registry-version that is none',
    (w) => {
      w.options = SERVER_MODE
      annotate(serverOf(w), { 'registry-version': 'latest' })
    },
    USUAL,
    ['InvalidAnnotation'],
  ],
  ['registry-version in operator mode', (w) => annotate(serverOf(w), { 'registry-version': '2.1.0' }), USUAL, []],
  [
    'each malformed annotation is ignored alone',
    (w) => {
      w.options = SERVER_MODE
      const bad = {
        'registry-title': ' ',
        'registry-icon': 'http://x',
        'registry-tier': 'Gold',
        'registry-category': 'A',
        tools: '[1]',
        'tool-definitions': '{',
      }
      annotate(serverOf(w), bad)
    },
    USUAL,
    Array.from({ length: 6 }, () => 'InvalidAnnotation'),
  ],
  [
    'a cluster name',
    (w) => {
      w.options = { ...w.options, clusterName: 'east' }
    },
    ['dev.stacklok.toolhive/east.mcp-servers.github-mcp@1.0.0 sse https://mcp.company.com/github'],
    [],
  ],
  [
    'two kinds of one name by two Gateways [000-092]',
    (w) => {
      w.proxies = [mcp('MCPRemoteProxy', 'github-mcp', { transport: 'sse' })]
      annotate(first(w.proxies), { 'registry-description': 'P' })
      w.services.push(proxyService('MCPRemoteProxy', 'github-mcp'))
      w.gateways.push(gateway('internal-gateway'))
      const route = httpRoute('r2', 'mcp-github-mcp-remote-proxy', '/inside')
      route.spec.parentRefs[0].name = 'internal-gateway'
      w.routes.push(route)
    },
    [
      'dev.stacklok.toolhive/mcp-servers.github-mcp-external-gateway@1.0.0 sse https://mcp.company.com/github',
      'dev.stacklok.toolhive/mcp-servers.github-mcp-internal-gateway@1.0.0 sse https://mcp.company.com/inside',
    ],
    [],
  ],
  [
    'two kinds of one name by one Gateway',
    (w) => {
      w.proxies = [mcp('MCPRemoteProxy', 'github-mcp', { transport: 'sse' })]
      annotate(first(w.proxies), { 'registry-description': 'P' })
      w.services.push(proxyService('MCPRemoteProxy', 'github-mcp'))
      w.routes.push(httpRoute('r2', 'mcp-github-mcp-remote-proxy', '/inside'))
    },
    [
      'dev.stacklok.toolhive/mcp-servers.github-mcp-mcpremoteproxy@1.0.0 sse https://mcp.company.com/inside',
      'dev.stacklok.toolhive/mcp-servers.github-mcp-mcpserver@1.0.0 sse https://mcp.company.com/github',
    ],
    [],
  ],
  [
    'two kinds of one name, one of them direct',
    (w) => {
      w.proxies = [mcp('MCPRemoteProxy', 'github-mcp', { transport: 'sse' })]
      annotate(first(w.proxies), { 'registry-description': 'P', 'registry-url': 'https://p.co/' })
    },
    [
      'dev.stacklok.toolhive/mcp-servers.github-mcp@1.0.0 sse https://p.co/',
      'dev.stacklok.toolhive/mcp-servers.github-mcp-external-gateway@1.0.0 sse https://mcp.company.com/github',
    ],
    [],
  ],
  [
    'the suffixed name is that of another resource',
    (w) => {
      w.proxies = [mcp('MCPRemoteProxy', 'github-mcp', { transport: 'sse' })]
      annotate(first(w.proxies), { 'registry-description': 'P', 'registry-url': 'https://p.co/' })
      const other = mcp('MCPServer', 'github-mcp-external-gateway', { image: 'y', transport: 'sse' })
      annotate(other, { 'registry-description': 'O', 'registry-url': 'https://o.co/' })
      w.servers.push(other)
    },
    [
      'dev.stacklok.toolhive/mcp-servers.github-mcp@1.0.0 sse https://p.co/',
      'dev.stacklok.toolhive/mcp-servers.github-mcp-external-gateway@1.0.0 sse https://o.co/',
      'dev.stacklok.toolhive/mcp-servers.github-mcp-mcpserver@1.0.0 sse https://mcp.company.com/github',
    ],
    [],
  ],
  [
    'one name in two namespaces [000-070] [000-091]',
    (w) => {
      const other = mcp('MCPServer', 'github-mcp', { image: 'y', transport: 'sse' }, 'another')
      annotate(other, { 'registry-description': 'O', 'registry-url': 'https://o.co/' })
      w.servers.push(other)
    },
    ['dev.stacklok.toolhive/another.github-mcp@1.0.0 sse https://o.co/', ...USUAL],
    [],
  ],
  [
    'a name that is too long',
    (w) => {
      const other = mcp('VirtualMCPServer', 'v'.repeat(190))
      annotate(other, { 'registry-description': 'O', 'registry-url': 'https://o.co/' })
      w.virtuals.push(other)
    },
    USUAL,
    ['InvalidServerName'],
  ],
  [
    'a conflict leaves the others alone [000-124]',
    (w) => {
      const other = mcp('MCPServer', 'other', { image: 'y', transport: 'sse' })
      annotate(other, { 'registry-url': 'https://o.co/' })
      w.servers.push(other)
    },
    USUAL,
    ['MissingDescription'],
  ],
]

describe.each([
  ['direct URLs and transports', DIRECT],
  ['entries and names', ENTRIES],
] as const)('decision table: %s', (_, rows) => {
  it.each(rows)('%s', (...row) => {
    checkRow(row)
  })
})
