import { readFileSync } from 'node:fs'
import { discover } from '@thv/catalog/discover/discover'
import { gatewayOf } from '@thv/catalog/discover/objects/gateway'
import { httpRouteOf } from '@thv/catalog/discover/objects/http-route'
import { mcpResourceOf } from '@thv/catalog/discover/objects/mcp-resource'
import { backendServiceOf } from '@thv/catalog/discover/objects/service'
import { accepted, gateway, mcp, proxyService } from '@thv/catalog/discover/testing/export-world'
import type { KubeObject } from '@thv/kube'
import { expect, it } from 'vitest'
import { parse } from 'yaml'

/* The page about export: its examples give what the page says, and it says what it was written for. */

const PAGE = readFileSync(new URL('../../docs/how-to/export-servers.md', import.meta.url), 'utf8')
const [direct, route] = [...PAGE.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map((match) => parse(match[1] ?? '') as KubeObject)
const options = { mode: 'server', crossNamespaceGateway: 'accepted' } as const
const none = { resources: [], routes: [], services: [], gateways: [], grants: [] }
const urlsOf = (text = '{}') => (JSON.parse(text) as { remotes?: { url: string }[] }).remotes?.map(({ url }) => url)

it('the example of the direct method is listed as the page says [000-106]', () => {
  const resource = direct && mcpResourceOf('MCPServer', direct)
  const { entries, warnings } = discover({ ...none, resources: resource ? [resource] : [] }, options)
  expect(entries.map(({ name }) => name)).toEqual(['dev.stacklok.toolhive/production.analytics'])
  expect(urlsOf(entries[0]?.text)).toEqual(['https://mcp.example.com/analytics'])
  expect(warnings).toEqual([])
  expect(PAGE).toContain('registry-description')
})

it('the example of the route is listed as the page says', () => {
  const { parentRefs } = (route as unknown as { spec: { parentRefs: object[] } }).spec
  const annotated = { ...route, status: { parents: parentRefs.map((ref) => accepted(ref)) } } as unknown as KubeObject
  const resource = mcpResourceOf('MCPServer', mcp('MCPServer', 'shop', { image: 'x' }, 'production'))
  const { entries, warnings } = discover(
    {
      ...none,
      resources: resource ? [resource] : [],
      routes: [httpRouteOf(annotated)].filter((each) => each !== undefined),
      services: [backendServiceOf(proxyService('MCPServer', 'shop', 'production'))],
      gateways: [gatewayOf(gateway('public'))],
    },
    options,
  )
  expect(urlsOf(entries[0]?.text)).toEqual(['https://mcp.example.com/servers/shop'])
  expect(warnings).toEqual([])
})

it.each([
  ['says when to annotate the resource [001-119]', 'no Gateway API, where you want to say the URL yourself, or where it cannot be derived'],
  ['says when to annotate the route [001-120]', 'the Gateway API is in use, and URLs should follow the routing by themselves'],
  ['recommends one way, not both [000-090]', 'Use one of them for a resource, not both'],
  ['advises NetworkPolicies [000-101]', '**NetworkPolicies.** Allow only the pods of the Gateway'],
  ['advises limiting the namespaces that attach routes [000-102]', 'Limit the namespaces that may attach HTTPRoutes to a Gateway'],
  [
    'explains defense in depth [000-103]',
    '**Defense in depth.** Exposure by a route, authentication at the proxy and limits of the network',
  ],
  ['asks for synchronized clocks [001-106]', 'keep the clocks of the nodes synchronized'],
])('%s', (_, text) => {
  expect(PAGE.replaceAll('\n', ' ').replaceAll(/ +/g, ' ')).toContain(text)
})
