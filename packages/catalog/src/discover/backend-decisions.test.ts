import { describe, it } from 'vitest'
import { annotate, at, checkRow, NAME, type Row, routeOf, ruleOf, serverOf, serviceOf, USUAL } from './testing/decision-row.ts'
import { grant, httpRoute, mcp, proxyService, rewriteTo } from './testing/export-world.ts'

const PATHS: readonly Row[] = [
  ['no matches', (w) => void delete ruleOf(w).matches, at('https://mcp.company.com/'), []],
  [
    'PathPrefix / [000-017]',
    (w) => {
      ruleOf(w).matches[0].path.value = '/'
    },
    at('https://mcp.company.com/'),
    [],
  ],
  ['a path without type is a prefix [000-029]', (w) => void delete ruleOf(w).matches[0].path.type, USUAL, []],
  [
    'Exact /mcp',
    (w) => {
      ruleOf(w).matches = [{ path: { type: 'Exact', value: '/mcp' } }]
      ruleOf(w).filters = []
      serverOf(w).spec.transport = 'streamable-http'
    },
    [`${NAME} streamable-http https://mcp.company.com/mcp`],
    [],
  ],
  [
    'a regular expression only',
    (w) => {
      ruleOf(w).matches[0].path.type = 'RegularExpression'
    },
    [],
    ['UnsupportedPathMatch'],
  ],
  [
    'a prefix behind a regular expression',
    (w) => ruleOf(w).matches.unshift({ path: { type: 'RegularExpression', value: '/.*' } }),
    USUAL,
    [],
  ],
  [
    'sixty-four matches: the first counts',
    (w) => {
      ruleOf(w).matches = Array.from({ length: 64 }, (_, i) => ({ path: { type: 'PathPrefix', value: `/p${i}` } }))
    },
    at('https://mcp.company.com/p0'),
    [],
  ],
  [
    'a match on headers only',
    (w) => {
      ruleOf(w).matches = [{ headers: [{ name: 'x', value: 'y' }] }]
    },
    at('https://mcp.company.com/'),
    ['RestrictedMatch'],
  ],
  [
    'an unrestricted match before one on headers',
    (w) => ruleOf(w).matches.unshift({ path: { type: 'PathPrefix', value: '/beta' }, headers: [{ name: 'x', value: 'y' }] }),
    USUAL,
    [],
  ],
  [
    'a path that cannot stand in a URL',
    (w) => {
      ruleOf(w).matches[0].path.value = '/a b'
    },
    [],
    ['UnsupportedPathMatch'],
  ],
  [
    'a path with a template',
    (w) => {
      ruleOf(w).matches[0].path.value = '/{tenant}'
    },
    [],
    ['UnsupportedPathMatch'],
  ],
  [
    'no rewrite',
    (w) => {
      ruleOf(w).filters = []
    },
    USUAL,
    ['PathNotServed'],
  ],
  [
    'a rewrite to /sse',
    (w) => {
      ruleOf(w).filters = [rewriteTo('/sse')]
    },
    USUAL,
    [],
  ],
  [
    'a rewrite to /mcp of an SSE server',
    (w) => {
      ruleOf(w).filters = [rewriteTo('/mcp')]
    },
    USUAL,
    ['PathNotServed'],
  ],
  [
    'a rewrite of the full path',
    (w) => {
      ruleOf(w).filters = [{ type: 'URLRewrite', urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath: '/sse' } } }]
    },
    USUAL,
    [],
  ],
  [
    'a rewrite of the backend',
    (w) => {
      ruleOf(w).filters = []
      ruleOf(w).backendRefs[0].filters = [rewriteTo('/')]
    },
    USUAL,
    [],
  ],
  [
    'a rewrite of the host alone',
    (w) => {
      ruleOf(w).filters = [{ type: 'URLRewrite', urlRewrite: { hostname: 'inside' } }]
    },
    USUAL,
    ['PathNotServed'],
  ],
  [
    'header modifiers and mirrors change nothing',
    (w) => ruleOf(w).filters.push({ type: 'RequestMirror', requestMirror: { backendRef: { name: 'mcp-other-proxy' } } }),
    USUAL,
    [],
  ],
  [
    'a rule that redirects',
    (w) => {
      ruleOf(w).filters = [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https' } }]
    },
    [],
    ['NoMCPBackend'],
  ],
]

const BACKENDS: readonly Row[] = [
  [
    'no rules',
    (w) => {
      routeOf(w).spec.rules = []
    },
    [],
    ['NoMCPBackend'],
  ],
  [
    'a Service that does not exist',
    (w) => {
      w.services = []
    },
    [],
    ['NoMCPBackend'],
  ],
  ['a Service that may not be read', (w) => w.unreadable.push('Service/mcp-servers/mcp-github-mcp-proxy'), [], ['NoMCPBackend']],
  ['a Service without owner [000-130]', (w) => void delete serviceOf(w).metadata.ownerReferences, [], ['NoMCPBackend']],
  [
    'a Service that a Deployment owns',
    (w) => Object.assign(serviceOf(w).metadata.ownerReferences[0], { apiVersion: 'apps/v1', kind: 'Deployment' }),
    [],
    ['NoMCPBackend'],
  ],
  [
    'an owner of that kind in another group',
    (w) => Object.assign(serviceOf(w).metadata.ownerReferences[0], { apiVersion: 'example.com/v1' }),
    [],
    ['NoMCPBackend'],
  ],
  [
    'any name of the Service [000-033]',
    (w) => {
      serviceOf(w).metadata.name = 'github-mcp'
      ruleOf(w).backendRefs[0].name = 'github-mcp'
    },
    USUAL,
    [],
  ],
  ['an owner that is not the controller', (w) => void delete serviceOf(w).metadata.ownerReferences[0].controller, USUAL, []],
  [
    'the owner was deleted and made again',
    (w) => {
      serverOf(w).metadata.uid = 'another'
    },
    [],
    ['NoMCPBackend'],
  ],
  [
    'the owner is gone',
    (w) => {
      w.servers = []
    },
    [],
    ['NoMCPBackend'],
  ],
  [
    'the owner is being deleted',
    (w) => {
      serverOf(w).metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    },
    [],
    ['NoMCPBackend'],
  ],
  [
    'a headless Service of the proxy [001-067]',
    (w) => {
      serviceOf(w).spec.clusterIP = 'None'
    },
    [],
    ['NoMCPBackend'],
  ],
  [
    'a headless Service of the server [001-067]',
    (w) => Object.assign(serviceOf(w).spec, { clusterIP: 'None', selector: { app: 'github-mcp', 'toolhive-basename': 'github-mcp' } }),
    [],
    ['BypassesProxy'],
  ],
  [
    "the Service of the server's pods",
    (w) => {
      serviceOf(w).spec.selector = { app: 'github-mcp', 'toolhive-basename': 'github-mcp' }
    },
    [],
    ['BypassesProxy'],
  ],
  [
    "a Service without owner that selects the server's pods",
    (w) => {
      delete serviceOf(w).metadata.ownerReferences
      serviceOf(w).spec.selector = { app: 'github-mcp', 'toolhive-basename': 'github-mcp' }
    },
    [],
    ['BypassesProxy'],
  ],
  [
    'a selector of other pods',
    (w) => {
      serviceOf(w).spec.selector = { app: 'github-mcp' }
    },
    [],
    ['NoMCPBackend'],
  ],
  ['no selector', (w) => void delete serviceOf(w).spec.selector, [], ['NoMCPBackend']],
  [
    'a rule that sends a part past the proxy',
    (w) => {
      const bypass = proxyService('MCPServer', 'github-mcp')
      bypass.metadata.name = 'mcp-github-mcp'
      bypass.spec.selector = { app: 'github-mcp', 'toolhive-basename': 'github-mcp' }
      w.services.push(bypass)
      ruleOf(w).backendRefs.push({ name: 'mcp-github-mcp', port: 8080 })
    },
    [],
    ['BypassesProxy'],
  ],
  [
    'a backend of weight 0',
    (w) => {
      ruleOf(w).backendRefs[0].weight = 0
    },
    [],
    ['NoMCPBackend'],
  ],
  [
    'a backend of another kind',
    (w) => {
      ruleOf(w).backendRefs[0].kind = 'ServiceImport'
    },
    [],
    ['NoMCPBackend'],
  ],
  [
    'weighted backends: the heaviest [000-079]',
    (w) => {
      w.servers.push(mcp('MCPServer', 'github-mcp-v2', { image: 'y', transport: 'sse' }))
      w.services.push(proxyService('MCPServer', 'github-mcp-v2'))
      ruleOf(w).backendRefs = [
        { name: 'mcp-github-mcp-v2-proxy', weight: 10 },
        { name: 'mcp-github-mcp-proxy', weight: 90 },
      ]
    },
    USUAL,
    ['SharedRule'],
  ],
  ['a backend that is no MCP resource beside one that is', (w) => ruleOf(w).backendRefs.unshift({ name: 'web', weight: 99 }), USUAL, []],
  [
    'two rules with two backends [000-080]',
    (w) => {
      const other = mcp('MCPServer', 'slack', { image: 'y', transport: 'streamable-http' })
      annotate(other, { 'registry-description': 'Slack' })
      w.servers.push(other)
      w.services.push(proxyService('MCPServer', 'slack'))
      routeOf(w).spec.rules.push(httpRoute('x', 'mcp-slack-proxy', '/slack').spec.rules[0])
    },
    [...USUAL, 'dev.stacklok.toolhive/mcp-servers.slack@1.0.0 streamable-http https://mcp.company.com/slack'],
    [],
  ],
  [
    'one resource by two rules: the first',
    (w) => routeOf(w).spec.rules.push(httpRoute('x', 'mcp-github-mcp-proxy', '/again').spec.rules[0]),
    USUAL,
    [],
  ],
  [
    'sixteen rules',
    (w) => {
      for (let i = 0; i < 15; i += 1) routeOf(w).spec.rules.push(httpRoute('x', `web-${i}`, `/w${i}`).spec.rules[0])
    },
    USUAL,
    [],
  ],
  [
    'sixteen rules of sixty-four matches each: the first match of the first rule with the resource',
    (w) => {
      const matches = (rule: number) => Array.from({ length: 64 }, (_, i) => ({ path: { type: 'PathPrefix', value: `/r${rule}/p${i}` } }))
      ruleOf(w).matches = matches(0)
      for (let i = 1; i < 16; i += 1) {
        const [rule] = httpRoute('x', 'mcp-github-mcp-proxy', '/').spec.rules
        routeOf(w).spec.rules.push({ ...rule, matches: matches(i) })
      }
    },
    at('https://mcp.company.com/r0/p0'),
    [],
  ],
  [
    'a resource by two routes [001-055]',
    (w) => w.routes.push(httpRoute('r0', 'mcp-github-mcp-proxy', '/first')),
    at('https://mcp.company.com/first', 'https://mcp.company.com/github'),
    [],
  ],
  [
    'a Service of another namespace without grant [000-109]',
    (w) => {
      const other = mcp('MCPServer', 'github-mcp', { image: 'x', transport: 'sse' }, 'tools')
      w.servers = [other]
      w.services = [proxyService('MCPServer', 'github-mcp', 'tools')]
      ruleOf(w).backendRefs[0].namespace = 'tools'
    },
    [],
    ['ReferenceNotPermitted'],
  ],
  [
    'a Service of another namespace with a grant [000-109]',
    (w) => {
      const other = mcp('MCPServer', 'github-mcp', { image: 'x', transport: 'sse' }, 'tools')
      annotate(other, { 'registry-description': 'x' })
      w.servers = [other]
      w.services = [proxyService('MCPServer', 'github-mcp', 'tools')]
      ruleOf(w).backendRefs[0].namespace = 'tools'
      w.grants.push(grant('svc', { group: '', kind: 'Service', name: 'mcp-github-mcp-proxy' }, 'tools'))
    },
    ['dev.stacklok.toolhive/tools.github-mcp@1.0.0 sse https://mcp.company.com/github'],
    [],
  ],
]

describe.each([
  ['paths', PATHS],
  ['backends', BACKENDS],
] as const)('decision table: %s', (_, rows) => {
  it.each(rows)('%s', (...row) => {
    checkRow(row)
  })
})
