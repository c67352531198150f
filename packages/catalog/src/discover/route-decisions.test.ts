import { describe, it } from 'vitest'
import {
  annotate,
  at,
  checkRow,
  conditions,
  first,
  gatewayOf,
  listeners,
  type Row,
  routeOf,
  SERVER_MODE,
  second,
  section,
  USUAL,
} from './testing/decision-row.ts'
import { accepted, gateway, listener } from './testing/export-world.ts'

const ROUTES: readonly Row[] = [
  ['an accepted route with a grant [000-019] [000-029] [000-030] [000-036] [000-051] [000-062] [001-112]', () => {}, USUAL, []],
  [
    'annotation missing [000-007] [000-031] [000-113]',
    (w) => {
      routeOf(w).metadata.annotations = {}
    },
    [],
    [],
  ],
  ['annotation "false" [000-027]', (w) => annotate(routeOf(w), { 'registry-export': 'false' }), [], []],
  ['annotation "True" [000-027] [001-034]', (w) => annotate(routeOf(w), { 'registry-export': 'True' }), [], []],
  ['annotation "1" [000-027]', (w) => annotate(routeOf(w), { 'registry-export': '1' }), [], []],
  ['annotation with a space [000-027]', (w) => annotate(routeOf(w), { 'registry-export': ' true' }), [], []],
  ['annotation empty', (w) => annotate(routeOf(w), { 'registry-export': '' }), [], []],
  [
    'annotation of another prefix [000-042]',
    (w) => {
      routeOf(w).metadata.annotations = { 'other.example/registry-export': 'true', 'registry-export': 'true' }
    },
    [],
    [],
  ],
  [
    'a route that is being deleted',
    (w) => {
      routeOf(w).metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    },
    [],
    [],
  ],
  [
    'no status [000-032]',
    (w) => {
      routeOf(w).status = undefined
    },
    [],
    ['RouteNotAccepted'],
  ],
  ['Accepted=False [000-082]', (w) => conditions(w, { Accepted: 'False' }), [], ['RouteNotAccepted']],
  ['Accepted=Unknown', (w) => conditions(w, { Accepted: 'Unknown' }), [], ['RouteNotAccepted']],
  ['ResolvedRefs=False', (w) => conditions(w, { Accepted: 'True', ResolvedRefs: 'False' }), [], ['BackendRefsNotResolved']],
  ['no ResolvedRefs', (w) => conditions(w, { Accepted: 'True' }), USUAL, []],
  [
    'a status of an older generation',
    (w) => {
      routeOf(w).metadata.generation = 5
      routeOf(w).status.parents[0].conditions[0].observedGeneration = 4
    },
    USUAL,
    [],
  ],
  [
    'two controllers that disagree',
    (w) => routeOf(w).status.parents.unshift(accepted(routeOf(w).spec.parentRefs[0], { Accepted: 'False' })),
    USUAL,
    [],
  ],
  [
    'accepted for another section only [000-016]',
    (w) => {
      routeOf(w).status.parents = [accepted({ ...routeOf(w).spec.parentRefs[0] })]
      section(w, { sectionName: 'https' })
    },
    [],
    ['RouteNotAccepted'],
  ],
  [
    'two parents, only the second accepted [000-081]',
    (w) => {
      w.gateways.push(gateway('internal-gateway'))
      second(w, 'internal-gateway')
      routeOf(w).status.parents.shift()
    },
    USUAL,
    [],
  ],
  [
    'two accepted parents give two remotes [000-018]',
    (w) => {
      const other = gateway('internal-gateway')
      other.spec.listeners = [listener('https', 8443)]
      w.gateways.push(other)
      second(w, 'internal-gateway')
    },
    at('https://mcp.company.com/github', 'https://mcp.company.com:8443/github'),
    [],
  ],
  [
    'two parents with the same URL',
    (w) => {
      w.gateways.push(gateway('internal-gateway'))
      second(w, 'internal-gateway')
    },
    USUAL,
    [],
  ],
  [
    'a mesh parent only',
    (w) => {
      section(w, { group: '', kind: 'Service', name: 'x' })
      routeOf(w).status.parents = [accepted(routeOf(w).spec.parentRefs[0])]
    },
    [],
    ['RouteNotAccepted'],
  ],
  ['a ListenerSet parent only', (w) => section(w, { kind: 'ListenerSet' }), [], ['RouteNotAccepted']],
  [
    'parentRef without namespace means that of the route [000-028]',
    (w) => {
      w.gateways = [gateway('external-gateway', 'mcp-servers')]
      w.grants = []
      delete routeOf(w).spec.parentRefs[0].namespace
      delete routeOf(w).status.parents[0].parentRef.namespace
    },
    USUAL,
    [],
  ],
  [
    'Gateway missing',
    (w) => {
      w.gateways = []
    },
    [],
    ['GatewayNotFound'],
  ],
  ['Gateway not readable', (w) => w.unreadable.push('Gateway/gateway-system/external-gateway'), [], ['GatewayNotReadable']],
  [
    'no address yet',
    (w) => {
      gatewayOf(w).status.addresses = []
    },
    [],
    ['WaitingForGatewayAddress'],
  ],
  ['no status of the Gateway [000-034]', (w) => void delete gatewayOf(w).status, [], ['WaitingForGatewayAddress']],
  [
    'addresses of an unknown type only',
    (w) => {
      routeOf(w).spec.hostnames = []
      gatewayOf(w).status.addresses = [
        { type: 'example.com/name', value: 'x' },
        { type: 'NamedAddress', value: 'y' },
      ]
    },
    [],
    ['UnsupportedGatewayAddress'],
  ],
  [
    'no hostnames [000-065]',
    (w) => {
      routeOf(w).spec.hostnames = []
    },
    at('https://lb.company.com/github'),
    [],
  ],
  [
    'no hostnames, listener with one [000-065]',
    (w) => {
      routeOf(w).spec.hostnames = undefined
      listeners(w, listener('https', 443, { hostname: 'mcp.company.com' }))
    },
    USUAL,
    [],
  ],
  [
    'wildcard that the address matches [000-066]',
    (w) => {
      routeOf(w).spec.hostnames = ['*.company.com']
    },
    at('https://lb.company.com/github'),
    [],
  ],
  [
    'wildcard that the address does not match',
    (w) => {
      routeOf(w).spec.hostnames = ['*.mcp.dev']
    },
    at('https://lb.company.com/github'),
    ['WildcardHostname'],
  ],
  [
    'wildcard beside a concrete hostname',
    (w) => {
      routeOf(w).spec.hostnames = ['*.company.com', 'mcp.company.com']
    },
    USUAL,
    [],
  ],
  [
    'wildcard of the route, exact hostname of the listener',
    (w) => {
      routeOf(w).spec.hostnames = ['*.company.com']
      listeners(w, listener('https', 443, { hostname: 'mcp.company.com' }))
    },
    USUAL,
    [],
  ],
  [
    'wildcard of the listener',
    (w) => {
      routeOf(w).spec.hostnames = ['mcp.company.com', 'other.net']
      listeners(w, listener('https', 443, { hostname: '*.company.com' }))
    },
    USUAL,
    [],
  ],
  [
    'a wildcard does not match its own suffix',
    (w) => {
      routeOf(w).spec.hostnames = ['company.com']
      listeners(w, listener('https', 443, { hostname: '*.company.com' }))
    },
    [],
    ['NoMatchingListener'],
  ],
  [
    'capitals in hostnames',
    (w) => {
      routeOf(w).spec.hostnames = ['MCP.Company.com']
      listeners(w, listener('https', 443, { hostname: '*.COMPANY.com' }))
    },
    USUAL,
    [],
  ],
  [
    'hostnames that do not meet',
    (w) => listeners(w, listener('https', 443, { hostname: 'other.company.com' })),
    [],
    ['NoMatchingListener'],
  ],
  [
    'an IPv6 address [000-067]',
    (w) => {
      routeOf(w).spec.hostnames = []
      gatewayOf(w).status.addresses = [{ type: 'IPAddress', value: '2001:db8::1' }]
    },
    at('https://[2001:db8::1]/github'),
    [],
  ],
  [
    'an address without type is an IP address [000-067]',
    (w) => {
      routeOf(w).spec.hostnames = []
      gatewayOf(w).status.addresses = [{ value: '192.0.2.7' }]
    },
    at('https://192.0.2.7/github'),
    [],
  ],
  [
    'a host name before an IP address [001-049]',
    (w) => {
      routeOf(w).spec.hostnames = []
      gatewayOf(w).status.addresses.unshift({ type: 'IPAddress', value: '192.0.2.7' })
    },
    at('https://lb.company.com/github'),
    [],
  ],
  [
    'an address that is a wildcard',
    (w) => {
      routeOf(w).spec.hostnames = []
      gatewayOf(w).status.addresses = [{ type: 'Hostname', value: '*.lb.company.com' }]
    },
    [],
    ['UnsupportedGatewayAddress'],
  ],
  [
    'an HTTP listener on another port [000-035]',
    (w) => listeners(w, listener('http', 8080)),
    at('http://mcp.company.com:8080/github'),
    ['InsecureURL'],
  ],
  ['an HTTP listener on 80 [000-035]', (w) => listeners(w, listener('http', 80)), at('http://mcp.company.com/github'), ['InsecureURL']],
  ['an HTTPS listener on 80', (w) => listeners(w, listener('https', 80)), at('https://mcp.company.com:80/github'), []],
  ['HTTPS before HTTP', (w) => listeners(w, listener('http', 80), listener('https', 443)), USUAL, []],
  [
    'the section names the listener',
    (w) => {
      listeners(w, listener('http', 80), listener('https', 443))
      section(w, { sectionName: 'http' })
      routeOf(w).status.parents = [accepted(routeOf(w).spec.parentRefs[0])]
    },
    at('http://mcp.company.com/github'),
    ['InsecureURL'],
  ],
  [
    'the port names the listener',
    (w) => {
      listeners(w, listener('https', 443), listener('https-2', 8443))
      section(w, { port: 8443 })
      routeOf(w).status.parents = [accepted(routeOf(w).spec.parentRefs[0])]
    },
    at('https://mcp.company.com:8443/github'),
    [],
  ],
  [
    'a section that does not exist',
    (w) => {
      section(w, { sectionName: 'nope' })
      routeOf(w).status.parents = [accepted(routeOf(w).spec.parentRefs[0])]
    },
    [],
    ['NoMatchingListener'],
  ],
  ['a TLS listener only', (w) => listeners(w, listener('https', 443, { protocol: 'TLS' })), [], ['NoMatchingListener']],
  [
    'a listener that is not programmed',
    (w) => {
      gatewayOf(w).status.listeners = [{ name: 'https', conditions: [{ type: 'Programmed', status: 'False' }] }]
    },
    [],
    ['NoMatchingListener'],
  ],
  [
    'of two listeners the programmed one',
    (w) => {
      listeners(w, listener('https', 443), listener('http', 80))
      gatewayOf(w).status.listeners = [{ name: 'https', conditions: [{ type: 'Accepted', status: 'False' }] }]
    },
    at('http://mcp.company.com/github'),
    ['InsecureURL'],
  ],
  [
    'two hostnames give two remotes in their order [000-059]',
    (w) => {
      routeOf(w).spec.hostnames = ['b.co', 'a.co']
    },
    at('https://b.co/github', 'https://a.co/github'),
    [],
  ],
  [
    'listeners are chosen for each hostname [000-111]',
    (w) => {
      routeOf(w).spec.hostnames = ['a.co', 'b.co']
      listeners(w, listener('https', 443, { hostname: 'a.co' }), listener('http', 80, { hostname: 'b.co' }))
    },
    at('https://a.co/github', 'http://b.co/github'),
    ['InsecureURL'],
  ],
  [
    'the exact hostname before the wildcard, the longer wildcard before the shorter',
    (w) => {
      routeOf(w).spec.hostnames = ['a.x.co', 'b.x.co', 'c.co']
      listeners(
        w,
        listener('https-1', 1443),
        listener('https-2', 2443, { hostname: '*.co' }),
        listener('https-3', 3443, { hostname: '*.x.co' }),
        listener('https-4', 4443, { hostname: 'a.x.co' }),
      )
    },
    at('https://a.x.co:4443/github', 'https://b.x.co:3443/github', 'https://c.co:2443/github'),
    [],
  ],
  [
    'sixteen hostnames',
    (w) => {
      routeOf(w).spec.hostnames = Array.from({ length: 16 }, (_, i) => `h${i}.co`)
    },
    at(...Array.from({ length: 16 }, (_, i) => `https://h${i}.co/github`)),
    [],
  ],
]

const GRANTS: readonly Row[] = [
  [
    'no grant, mode referenceGrant',
    (w) => {
      w.grants = []
    },
    [],
    ['ReferenceNotPermitted'],
  ],
  [
    'no grant, mode accepted [001-044]',
    (w) => {
      w.grants = []
      w.options = SERVER_MODE
    },
    USUAL,
    [],
  ],
  [
    'a grant for another Gateway',
    (w) => {
      first(w.grants).spec.to[0].name = 'other'
    },
    [],
    ['ReferenceNotPermitted'],
  ],
  [
    'a grant for this Gateway',
    (w) => {
      first(w.grants).spec.to[0].name = 'external-gateway'
    },
    USUAL,
    [],
  ],
  [
    'a grant for another namespace',
    (w) => {
      first(w.grants).spec.from[0].namespace = 'tools'
    },
    [],
    ['ReferenceNotPermitted'],
  ],
  [
    'a grant for another kind of route',
    (w) => {
      first(w.grants).spec.from[0].kind = 'GRPCRoute'
    },
    [],
    ['ReferenceNotPermitted'],
  ],
  [
    'a grant in another namespace',
    (w) => {
      first(w.grants).metadata.namespace = 'mcp-servers'
    },
    [],
    ['ReferenceNotPermitted'],
  ],
  [
    'a Gateway of the same namespace needs none',
    (w) => {
      w.grants = []
      w.gateways = [gateway('external-gateway', 'mcp-servers')]
      section(w, { namespace: 'mcp-servers' })
    },
    USUAL,
    [],
  ],
  [
    'mode allowedRoutes: from Same',
    (w) => {
      w.options = { mode: 'server', crossNamespaceGateway: 'allowedRoutes' }
    },
    [],
    ['NoMatchingListener'],
  ],
  [
    'mode allowedRoutes: from All',
    (w) => {
      w.options = { mode: 'server', crossNamespaceGateway: 'allowedRoutes' }
      listeners(w, listener('https', 443, { allowedRoutes: { namespaces: { from: 'All' } } }))
    },
    USUAL,
    [],
  ],
  [
    'mode allowedRoutes: from Selector, which the controller has judged',
    (w) => {
      w.options = { mode: 'server', crossNamespaceGateway: 'allowedRoutes' }
      listeners(w, listener('https', 443, { allowedRoutes: { namespaces: { from: 'Selector', selector: {} } } }))
    },
    USUAL,
    [],
  ],
]

describe.each([
  ['routes and Gateways', ROUTES],
  ['permissions', GRANTS],
] as const)('decision table: %s', (_, rows) => {
  it.each(rows)('%s', (...row) => {
    checkRow(row)
  })
})
