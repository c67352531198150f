import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row, type Step } from './parity-row.ts'

const SERVICES = '/api/v1/namespaces/{ns}/services'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

const named = (name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({ metadata: { name, ...metadata }, spec })
const service = (name: string, spec: JsonObject = {}): JsonObject => named(name, { ports: [{ port: 80 }], ...spec })
const at = (path: string) => `${SERVICES}/${path}`
const specOf = (body: JsonObject | undefined): JsonObject => (body?.['spec'] as JsonObject | undefined) ?? {}
const last = (earlier: readonly JsonObject[]): JsonObject => earlier.at(-1) ?? {}
/** The last answer, with another spec. */
const changed =
  (spec: JsonObject) =>
  (earlier: readonly JsonObject[]): Json => ({ ...last(earlier), spec: { ...specOf(last(earlier)), ...spec } })
/** One creation. */
const creation = (title: string, name: string, spec: JsonObject, ...more: Step[]): ParityRow =>
  row(`service: ${title}`, post(SERVICES, service(name, spec)), ...more)
const apply = (name: string, manager: string, ports: readonly JsonObject[], query = ''): Step =>
  patch(
    `${at(name)}?fieldManager=${manager}${query}`,
    { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports: [...ports] } },
    'apply',
  )

const kinds: readonly ParityRow[] = [
  creation('defaults', 'v1', {}, get(at('v1')), get(at('v1'), TABLE)),
  creation(
    'everything of the plain type',
    'v2',
    {
      selector: { app: 'x' },
      ports: [
        { name: 'web', port: 80, targetPort: 'http', appProtocol: 'kubernetes.io/h2c' },
        { name: 'dns', port: 53, protocol: 'UDP', targetPort: 5353 },
        { name: 'dns-tcp', port: 53, targetPort: 0 },
      ],
      sessionAffinity: 'ClientIP',
      publishNotReadyAddresses: true,
      internalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
      externalIPs: ['198.51.100.7'],
    },
    get(at('v2'), TABLE),
  ),
  creation('node port', 'v3', { type: 'NodePort' }, get(at('v3'), TABLE)),
  creation('load balancer', 'v4', { type: 'LoadBalancer', loadBalancerSourceRanges: [' 192.0.2.0/24 '] }, get(at('v4'), TABLE)),
  creation('load balancer of local traffic', 'v5', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }),
  creation('load balancer without node ports', 'v6', { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }),
  row('service: external name', post(SERVICES, named('v7', { type: 'ExternalName', externalName: 'example.com.' })), get(at('v7'), TABLE)),
  creation('headless', 'v8', { clusterIP: 'None', selector: { app: 'x' } }, get(at('v8'), TABLE)),
  creation('headless without a selector', 'v9', { clusterIP: 'None' }),
  row('service: headless without ports', post(SERVICES, named('v10', { clusterIP: 'None', selector: { app: 'x' } }))),
  creation('dual stack if there is', 'v11', { ipFamilyPolicy: 'PreferDualStack' }),
  creation('affinity with its time', 'v12', {
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } },
  }),
  creation('times of an affinity that is none', 'v13', { sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } } }),
  row('service: a dry run', post(`${SERVICES}?dryRun=All`, service('v14', { type: 'NodePort' })), get(at('v14'))),
  row(
    'service: list as a table',
    post(SERVICES, named('v15', { ports: [{ port: 80 }, { name: 'b', port: 81 }].slice(0, 1) }, { labels: { set: 'table' } })),
    post(SERVICES, named('v16', { type: 'ExternalName', externalName: 'a.example.com' }, { labels: { set: 'table' } })),
    get(`${SERVICES}?labelSelector=set%3Dtable`, TABLE),
  ),
  row(
    'service: select by fields',
    post(SERVICES, named('v17', { type: 'ExternalName', externalName: 'b.example.com' })),
    get(`${SERVICES}?fieldSelector=spec.type%3DExternalName%2Cmetadata.name%3Dv17`),
    get(`${SERVICES}?fieldSelector=spec.clusterIP%3DNone%2Cmetadata.name%3Dv17`),
    get(`${SERVICES}?fieldSelector=spec.selector%3Dx`),
  ),
  row('service: put of what is not there', put(at('v18'), service('v18')), get(at('v18'))),
]

const addresses: readonly ParityRow[] = [
  row(
    'service: an address that is taken',
    post(SERVICES, service('a1')),
    post(SERVICES, (e) => service('a2', { clusterIP: specOf(last(e))['clusterIP'] ?? '' })),
    del(at('a1')),
    post(SERVICES, ([first]) => service('a2', { clusterIP: specOf(first)['clusterIP'] ?? '' })),
  ),
  creation('an address outside of the range', 'a3', { clusterIP: '192.0.2.1' }),
  creation('an address that is none', 'a4', { clusterIP: 'here' }),
  creation('an address that ends in nothing', 'a4', { clusterIP: '10.0.0' }),
  creation('plural without singular', 'a5', { clusterIPs: ['192.0.2.1'] }),
  creation('plural that begins otherwise', 'a6', { clusterIP: '192.0.2.1', clusterIPs: ['192.0.2.2'] }),
  creation('two addresses of one family', 'a7', { clusterIP: '192.0.2.1', clusterIPs: ['192.0.2.1', '192.0.2.2'] }),
  creation('three addresses', 'a8', { clusterIP: '192.0.2.1', clusterIPs: ['192.0.2.1', '2001:db8::1', '192.0.2.2'] }),
  creation('none and another', 'a9', { clusterIP: 'None', clusterIPs: ['None', '192.0.2.2'] }),
  creation('two addresses without a policy', 'a10', { clusterIP: '192.0.2.1', clusterIPs: ['192.0.2.1', '2001:db8::1'] }),
  creation('an address of the other family', 'a11', { clusterIP: '2001:db8::1' }),
  creation('an address that is not of its family', 'a12', { clusterIP: '2001:db8::1', ipFamilies: ['IPv4'] }),
  creation('the other family', 'a13', { ipFamilies: ['IPv6'] }),
  creation('an unknown family', 'a14', { ipFamilies: ['IPv5', 'IPv4', 'IPv4'] }),
  creation('an unknown family policy', 'a15', { ipFamilyPolicy: 'Some' }),
  creation('both families required', 'a16', { ipFamilyPolicy: 'RequireDualStack' }),
  creation('two families on a single stack', 'a17', { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'SingleStack' }),
  creation('families of a headless one', 'a18', { clusterIP: 'None', ipFamilies: ['IPv6'], ipFamilyPolicy: 'PreferDualStack' }),
  creation('a node port out of the range', 'a19', { type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] }),
  row(
    'service: a node port that is taken',
    post(SERVICES, service('a20', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_077 }] })),
    post(SERVICES, service('a21', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_077 }] })),
    del(at('a20')),
    post(SERVICES, service('a21', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_077 }] })),
    del(at('a21')),
  ),
  creation(
    'a node port for two protocols',
    'a22',
    {
      type: 'NodePort',
      ports: [
        { name: 'a', port: 53, nodePort: 30_078 },
        { name: 'b', port: 53, nodePort: 30_078, protocol: 'UDP' },
      ],
    },
    del(at('a22')),
  ),
  creation('a node port twice', 'a23', {
    type: 'NodePort',
    ports: [
      { name: 'a', port: 53, nodePort: 30_079 },
      { name: 'b', port: 54, nodePort: 30_079 },
    ],
  }),
  creation('node ports of both protocols alike', 'a24', {
    type: 'NodePort',
    ports: [
      { name: 'a', port: 53 },
      { name: 'b', port: 53, protocol: 'UDP' },
    ],
  }),
]

const refusals: readonly ParityRow[] = [
  row('service: no ports', post(SERVICES, named('r1', {}))),
  row('service: no spec', post(SERVICES, { metadata: { name: 'r1' } })),
  creation('wrong numbers of ports', 'r2', {
    ports: [
      { name: 'a', port: 0 },
      { name: 'b', port: 70_000, targetPort: 70_000 },
      { name: 'c', port: -1 },
    ],
  }),
  creation('ports without names', 'r3', { ports: [{ port: 1 }, { port: 2 }] }),
  creation('names of ports', 'r4', {
    ports: [
      { name: 'Web', port: 1 },
      { name: 'a.b', port: 2 },
      { name: 'x'.repeat(64), port: 3 },
    ],
  }),
  creation('names of ports twice', 'r5', {
    ports: [
      { name: 'a', port: 1 },
      { name: 'a', port: 2 },
    ],
  }),
  creation('a port twice', 'r6', {
    ports: [
      { name: 'a', port: 1 },
      { name: 'b', port: 1 },
    ],
  }),
  creation('an unknown protocol', 'r7', { ports: [{ port: 1, protocol: 'HTTP' }] }),
  creation('target ports by wrong names', 'r8', {
    ports: [
      { name: 'a', port: 1, targetPort: '80' },
      { name: 'b', port: 2, targetPort: 'Web_' },
      { name: 'c', port: 3, targetPort: '-a--b-' },
      { name: 'd', port: 4, targetPort: 'a'.repeat(16) },
    ],
  }),
  creation('an application protocol', 'r9', { ports: [{ port: 1, appProtocol: 'h2 c' }] }),
  creation('an unknown type', 'r10', { type: 'Cluster' }),
  creation('an unknown affinity', 'r11', { sessionAffinity: 'Cookie' }),
  creation('an affinity of no time', 'r12', { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } }),
  creation('an affinity of too much time', 'r13', {
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 90_000 } },
  }),
  creation('an external name without one', 'r14', { type: 'ExternalName' }),
  creation('an external name with an address', 'r15', {
    type: 'ExternalName',
    externalName: 'not a name',
    clusterIP: '192.0.2.1',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
  }),
  creation('a node port without its type', 'r16', { ports: [{ port: 1, nodePort: 30_070 }] }),
  creation('a headless node port', 'r17', { type: 'NodePort', clusterIP: 'None' }),
  creation('a headless load balancer', 'r18', { type: 'LoadBalancer', clusterIP: 'None' }),
  creation('members of a load balancer', 'r19', {
    loadBalancerSourceRanges: ['192.0.2.0/24', 'nonsense'],
    loadBalancerClass: 'example.com/lb',
    allocateLoadBalancerNodePorts: true,
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 31_000,
  }),
  creation('a wrong load balancer', 'r20', {
    type: 'LoadBalancer',
    loadBalancerSourceRanges: ['192.0.2.1'],
    loadBalancerClass: 'bad class',
    externalTrafficPolicy: 'Some',
  }),
  creation('unknown policies of traffic', 'r21', { internalTrafficPolicy: 'Some', trafficDistribution: 'Far' }),
  creation('external addresses', 'r22', {
    externalIPs: ['here', '127.0.0.1', '0.0.0.0', '169.254.1.1', '224.0.0.1', '::1', '2001:db8::1', '203.0.113.300'],
  }),
  creation('a selector', 'r23', { selector: { 'bad key!': 'bad value!' } }),
  row('service: a name that begins with a digit', post(SERVICES, service('1st'))),
  row('service: a name with a dot', post(SERVICES, service('a.b'))),
  row('service: a port that is a text', post(SERVICES, service('r24', { ports: [{ port: '80' }] }))),
]

const changes: readonly ParityRow[] = [
  row(
    'service: put keeps the address',
    post(SERVICES, service('c1', { selector: { a: 'b' } })),
    put(at('c1'), service('c1', { selector: { a: 'c' } })),
    put(at('c1'), (e) => last(e)),
  ),
  row('service: put with another address', post(SERVICES, service('c2')), put(at('c2'), changed({ clusterIP: '192.0.2.1' }))),
  row('service: put without an address but with the plural', post(SERVICES, service('c2b')), put(at('c2b'), changed({ clusterIP: '' }))),
  row('service: patch to headless', post(SERVICES, service('c3')), patch(at('c3'), { spec: { clusterIP: 'None' } })),
  row(
    'service: patch both addresses',
    post(SERVICES, service('c4')),
    patch(at('c4'), { spec: { clusterIP: 'None', clusterIPs: ['None'] } }),
    patch(at('c4'), { spec: { clusterIP: null, clusterIPs: null } }),
  ),
  row(
    'service: from headless',
    post(SERVICES, service('c5', { clusterIP: 'None', selector: { a: 'b' } })),
    patch(at('c5'), { spec: { clusterIP: '192.0.2.1' } }),
    patch(at('c5'), { spec: { selector: { a: 'c' } } }),
  ),
  row('service: patch of the families', post(SERVICES, service('c6')), patch(at('c6'), { spec: { ipFamilies: ['IPv6'] } })),
  row(
    'service: to an external name and back',
    post(SERVICES, service('c7')),
    patch(at('c7'), { spec: { type: 'ExternalName', externalName: 'example.com' } }),
    patch(at('c7'), { spec: { type: 'ClusterIP', externalName: null } }),
  ),
  row(
    'service: to a node port and back',
    post(SERVICES, service('c8')),
    patch(at('c8'), { spec: { type: 'NodePort' } }),
    put(at('c8'), service('c8', { type: 'NodePort' })),
    patch(at('c8'), { spec: { type: 'ClusterIP' } }),
  ),
  row(
    'service: to a load balancer and back',
    post(SERVICES, service('c9')),
    patch(at('c9'), { spec: { type: 'LoadBalancer', loadBalancerClass: 'example.com/lb', externalTrafficPolicy: 'Local' } }),
    patch(at('c9'), { spec: { loadBalancerClass: 'example.com/other' } }),
    patch(at('c9'), { spec: { healthCheckNodePort: 31_999 } }),
    patch(at('c9'), { spec: { externalTrafficPolicy: 'Cluster' } }),
    patch(at('c9'), { spec: { type: 'ClusterIP' } }),
  ),
  row(
    'service: status of a load balancer',
    post(SERVICES, service('c10', { type: 'LoadBalancer' })),
    patch(at('c10/status'), { status: { loadBalancer: { ingress: [{ ip: '192.0.2.9' }, { hostname: 'lb.example.com' }] } } }),
    get(at('c10'), TABLE),
    patch(at('c10/status'), {
      status: {
        loadBalancer: { ingress: [{ ip: 'here' }, { hostname: '192.0.2.1' }, { ipMode: 'VIP' }, { ip: '192.0.2.1', ipMode: 'X' }] },
      },
    }),
    patch(at('c10'), { spec: { type: 'ClusterIP' } }),
    patch(at('c10/status'), { status: { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } } }),
    get(at('c10/status')),
  ),
  row(
    'service: conditions',
    post(SERVICES, service('c11')),
    patch(at('c11/status'), {
      status: {
        conditions: [{ type: 'Bound', status: 'True', reason: 'So', message: 'It is.', lastTransitionTime: '2020-01-01T00:00:00Z' }],
      },
    }),
  ),
  row(
    'service: strategic patch of ports',
    post(
      SERVICES,
      service('c12', {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 81 },
        ],
      }),
    ),
    patch(at('c12'), { spec: { ports: [{ port: 80, targetPort: 8080 }] } }, 'strategic'),
    patch(at('c12'), { spec: { ports: [{ $patch: 'delete', port: 81 }] } }, 'strategic'),
    patch(at('c12'), { spec: { ports: [{ port: 82 }] } }, 'strategic'),
    patch(at('c12'), { spec: { ports: [{ $patch: 'replace' }, { port: 83, targetPort: 'web' }] } }, 'strategic'),
  ),
  row(
    'service: strategic patch of the selector',
    post(SERVICES, service('c13', { selector: { a: 'b', c: 'd' } })),
    patch(at('c13'), { spec: { selector: { a: null, e: 'f' } } }, 'strategic'),
  ),
  row(
    'service: json patch of a port',
    post(SERVICES, service('c14')),
    patch(at('c14'), [{ op: 'replace', path: '/spec/ports/0/port', value: 81 }], 'json'),
    patch(at('c14'), [{ op: 'remove', path: '/spec/ports' }], 'json'),
  ),
  row(
    'service: apply',
    apply('c15', 'one', [{ port: 80, targetPort: 8080 }]),
    apply('c15', 'two', [{ port: 80, targetPort: 9090 }]),
    apply('c15', 'two', [{ port: 80, targetPort: 9090 }], '&force=true'),
    apply('c15', 'one', [{ port: 81, name: 'more' }]),
    apply('c15', 'two', [{ port: 81, name: 'more', protocol: 'TCP' }]),
  ),
  row(
    'service: apply that takes away',
    apply('c16', 'one', [
      { name: 'a', port: 80 },
      { name: 'b', port: 81 },
    ]),
    apply('c16', 'one', [{ name: 'a', port: 80 }]),
  ),
  row('service: delete', post(SERVICES, service('c17')), del(at('c17')), get(at('c17')), del(at('c17'))),
  row(
    'service: delete with a finalizer',
    post(SERVICES, named('c18', { ports: [{ port: 1 }] }, { finalizers: ['example.com/hold'] })),
    del(at('c18')),
    patch(at('c18'), { metadata: { finalizers: null } }),
    get(at('c18')),
  ),
  row(
    'service: delete a collection',
    post(SERVICES, named('c19', { ports: [{ port: 1 }] }, { labels: { set: 'gone' } })),
    del(`${SERVICES}?labelSelector=set%3Dgone`),
    get(`${SERVICES}?labelSelector=set%3Dgone`),
  ),
]

/** Services: what they are filled with, what they are given, what is refused. */
export const serviceRows: readonly ParityRow[] = [...kinds, ...addresses, ...refusals, ...changes]
