import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row, type Step } from './parity-row.ts'

const SLICES = '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'
const NODES = '/api/v1/nodes'
const EVENTS = '/api/v1/namespaces/{ns}/events'
const NEW_EVENTS = '/apis/events.k8s.io/v1/namespaces/{ns}/events'
const SECRETS = '/api/v1/namespaces/{ns}/secrets'
const MAPS = '/api/v1/namespaces/{ns}/configmaps'
const ACCOUNTS = '/api/v1/namespaces/{ns}/serviceaccounts'
const NAMESPACES = '/api/v1/namespaces'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const slice = (name: string, more: JsonObject): JsonObject => ({ metadata: { name }, addressType: 'IPv4', endpoints: [], ...more })
const sliceRow = (title: string, name: string, more: JsonObject, ...steps: Step[]): ParityRow =>
  row(`endpoint slice: ${title}`, post(SLICES, slice(name, more)), ...steps)

const slices: readonly ParityRow[] = [
  sliceRow(
    'defaults',
    'e1',
    { endpoints: [{ addresses: ['192.0.2.1'] }], ports: [{ port: 80 }, { name: 'x' }] },
    get(`${SLICES}/e1`, TABLE),
    get(`${SLICES}/e1`),
  ),
  sliceRow(
    'everything',
    'e2',
    {
      endpoints: [
        {
          addresses: ['192.0.2.1', '192.0.2.2'],
          conditions: { ready: false, serving: true, terminating: false },
          hostname: 'a',
          nodeName: 'node',
          zone: 'z',
          targetRef: { kind: 'Pod', name: 'p', namespace: '{ns}' },
          hints: { forZones: [{ name: 'z' }] },
        },
        { addresses: ['192.0.2.3'] },
        { addresses: ['192.0.2.4'] },
      ],
      ports: [
        { name: 'web', port: 80, appProtocol: 'http' },
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'c', port: 1 },
        { name: 'd', port: 2 },
      ],
    },
    get(`${SLICES}/e2`, TABLE),
  ),
  row('endpoint slice: nothing but a type', post(SLICES, { metadata: { name: 'e3' }, addressType: 'IPv6' }), get(`${SLICES}/e3`, TABLE)),
  row('endpoint slice: no type', post(SLICES, { metadata: { name: 'e4' }, endpoints: [] })),
  sliceRow('an unknown type', 'e4', { addressType: 'IPv5', endpoints: [{ addresses: ['here'] }] }),
  sliceRow('no addresses', 'e5', { endpoints: [{ addresses: [] }, {}] }),
  sliceRow('wrong addresses', 'e6', {
    endpoints: [{ addresses: ['here', '0.0.0.0', '169.254.1.1', '224.0.0.5', '2001:db8::1', '192.0.2.300'] }],
  }),
  sliceRow('wrong addresses of the other family', 'e7', {
    addressType: 'IPv6',
    endpoints: [{ addresses: ['192.0.2.1', 'fe80::1', '::', '2001:DB8::1', '2001:db8::1'] }],
  }),
  sliceRow('names as addresses', 'e8', {
    addressType: 'FQDN',
    endpoints: [{ addresses: ['example.com', 'example', 'Not_A_Name.com', '-a.com', ''] }],
  }),
  sliceRow('wrong ports', 'e9', {
    ports: [
      { name: 'a', port: 80 },
      { name: 'a', port: 81 },
      { name: 'Not_A_Name', port: 82 },
      { port: 1, protocol: 'HTTP' },
      { port: 2, name: 'b', appProtocol: 'h 2' },
      { name: 'c', port: 99_999 },
    ],
  }),
  sliceRow('wrong members of an endpoint', 'e10', {
    endpoints: [
      {
        addresses: ['192.0.2.1'],
        hostname: 'a.b',
        nodeName: 'Not_A_Node',
        hints: { forZones: [{ name: 'z' }, { name: 'z' }, { name: 'bad zone' }] },
      },
    ],
  }),
  sliceRow(
    'changes',
    'e11',
    { endpoints: [{ addresses: ['192.0.2.1'] }], ports: [{ port: 80 }] },
    patch(`${SLICES}/e11`, { addressType: 'IPv6' }),
    patch(`${SLICES}/e11`, { endpoints: [{ addresses: ['192.0.2.2'], conditions: { ready: true } }] }),
    patch(`${SLICES}/e11`, { metadata: { labels: { a: 'b' } } }),
    patch(`${SLICES}/e11`, { metadata: { annotations: { a: 'b' } } }),
    patch(`${SLICES}/e11`, { ports: [{ port: 81 }] }, 'strategic'),
    put(`${SLICES}/e11`, slice('e11', { ports: [] })),
    del(`${SLICES}/e11`),
  ),
]

const leases: readonly ParityRow[] = [
  row(
    'lease: everything',
    post(LEASES, {
      metadata: { name: 'l1b' },
      spec: {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        leaseTransitions: 0,
        acquireTime: '2020-01-01T00:00:00.000000Z',
        renewTime: '2020-01-01T00:00:00.123456Z',
      },
    }),
    patch(`${LEASES}/l1b`, { spec: { renewTime: '2020-01-01T00:00:01.000000Z', leaseTransitions: 1 } }),
    get(`${LEASES}/l1b`, TABLE),
  ),
  row('lease: nothing', post(LEASES, { metadata: { name: 'l2' } }), get(`${LEASES}/l2`, TABLE)),
  row('lease: wrong numbers', post(LEASES, { metadata: { name: 'l3' }, spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } })),
  row('lease: a strategy', post(LEASES, { metadata: { name: 'l4' }, spec: { strategy: 'Newest', preferredHolder: 'you' } })),
  row('lease: a holder without a strategy', post(LEASES, { metadata: { name: 'l5' }, spec: { preferredHolder: 'you' } })),
  row('lease: a time that is none', post(LEASES, { metadata: { name: 'l6' }, spec: { renewTime: 'now' } })),
  row(
    'lease: times that are not quite',
    post(LEASES, { metadata: { name: 'l6' }, spec: { renewTime: '2020-01-01T00:00:01Z' } }),
    post(LEASES, { metadata: { name: 'l6' }, spec: { renewTime: '2020-13-01T00:00:00.000000Z' } }),
    post(LEASES, { metadata: { name: 'l6' }, spec: { renewTime: '2020-01-01 00:00:00.000000Z' } }),
    post(LEASES, { metadata: { name: 'l6' }, spec: { renewTime: '2020-01-01T00:00:00.000000' } }),
    post(LEASES, { metadata: { name: 'l6' }, spec: { renewTime: '' } }),
    post(LEASES, { metadata: { name: 'l6' }, spec: { renewTime: '2020-01-01T00:00:00.5Z' } }),
    post(LEASES, { metadata: { name: 'l6', creationTimestamp: 'never' } }),
  ),
  row('lease: put of what is not there', put(`${LEASES}/l7`, { metadata: { name: 'l7' }, spec: { holderIdentity: 'me' } })),
  row('lease: put without a version', post(LEASES, { metadata: { name: 'l8' } }), put(`${LEASES}/l8`, { metadata: { name: 'l8' } })),
  row(
    'lease: patch to wrong numbers',
    post(LEASES, { metadata: { name: 'l9' }, spec: { leaseDurationSeconds: 1 } }),
    patch(`${LEASES}/l9`, { spec: { leaseDurationSeconds: -1 } }),
    patch(`${LEASES}/l9`, { spec: { holderIdentity: '' } }),
  ),
]

/** A new node gets this taint; here it is sent along, so that nothing depends on the server that adds it. */
const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }
const node = (name: string, spec: JsonObject = {}, more: JsonObject = {}): JsonObject => ({
  metadata: { name: `{ns}-${name}` },
  spec: { taints: [NOT_READY], ...spec },
  ...more,
})
const dryNode = (title: string, ...bodies: JsonObject[]): ParityRow =>
  row(`node: ${title}`, ...bodies.map((body) => post(`${NODES}?dryRun=All`, body)))

const nodes: readonly ParityRow[] = [
  dryNode('defaults', node('n1')),
  dryNode(
    'everything',
    node(
      'n1',
      { podCIDR: '192.0.2.0/24', podCIDRs: ['192.0.2.0/24'], providerID: 'thv://a', unschedulable: true },
      {
        status: {
          capacity: { cpu: '2', memory: '4Gi', pods: '110' },
          conditions: [{ type: 'Ready', status: 'True' }],
          addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
          nodeInfo: { kubeletVersion: 'v1', osImage: 'o' },
        },
      },
    ),
  ),
  dryNode('allocatable is the capacity', node('n1', {}, { status: { capacity: { cpu: '2' } } })),
  dryNode('the singular of its addresses', node('n1', { podCIDR: '192.0.2.0/24' }), node('n1', { podCIDRs: ['192.0.2.0/24'] })),
  dryNode(
    'wrong addresses',
    node('n1', { podCIDR: 'here' }),
    node('n1', { podCIDRs: ['192.0.2.0/24', '192.0.3.0/24'] }),
    node('n1', { podCIDR: '192.0.2.0/24', podCIDRs: ['192.0.3.0/24'] }),
  ),
  dryNode(
    'wrong taints',
    node('n1', {
      taints: [
        NOT_READY,
        { key: 'bad key!', effect: 'Never' },
        { key: 'a', value: 'bad value!', effect: 'NoExecute' },
        { key: 'b' },
        NOT_READY,
      ],
    }),
  ),
  dryNode('a wrong name', { metadata: { name: 'Not_A_Node' }, spec: { taints: [NOT_READY] } }),
  row(
    'node: changes that are refused',
    post(NODES, node('n2', { podCIDR: '192.0.2.0/24', podCIDRs: ['192.0.2.0/24'], providerID: 'thv://a' })),
    patch(`${NODES}/{ns}-n2`, { spec: { podCIDR: '192.0.3.0/24', podCIDRs: ['192.0.3.0/24'] } }),
    patch(`${NODES}/{ns}-n2`, { spec: { providerID: 'thv://b' } }),
    patch(`${NODES}/{ns}-n2`, { spec: { taints: [{ key: 'a', effect: 'x' }] } }, 'strategic'),
    patch(`${NODES}/{ns}-n2/status`, {
      status: {
        addresses: [
          { type: 'InternalIP', address: '192.0.2.1' },
          { type: 'InternalIP', address: '192.0.2.1' },
        ],
      },
    }),
    del(`${NODES}/{ns}-n2`),
  ),
]

const event = (name: string, more: JsonObject = {}): JsonObject => ({
  metadata: { name },
  involvedObject: { kind: 'Thing', namespace: '{ns}', name: 'x' },
  reason: 'Because',
  ...more,
})
const newEvent = (name: string, more: JsonObject = {}): JsonObject => ({
  metadata: { name },
  regarding: { kind: 'Thing', namespace: '{ns}', name: 'x' },
  reason: 'Because',
  type: 'Normal',
  action: 'Doing',
  note: 'It was so.',
  eventTime: '2020-01-01T00:00:00.000000Z',
  reportingController: 'example.com/tester',
  reportingInstance: 'one',
  ...more,
})

const events: readonly ParityRow[] = [
  row('event: of another namespace', post(EVENTS, event('ev1', { involvedObject: { kind: 'Thing', namespace: 'elsewhere' } }))),
  row('event: of something without a namespace', post(EVENTS, event('ev2', { involvedObject: { kind: 'Node', name: 'n' } }))),
  row('event: of nothing', post(EVENTS, { metadata: { name: 'ev3' } })),
  row('event: any type', post(EVENTS, event('ev4', { type: 'Odd', involvedObject: { namespace: '{ns}' } }))),
  row('event: with its time', post(EVENTS, event('ev5', { eventTime: '2020-01-01T00:00:00.000000Z' }))),
  row(
    'event: with its time and too long texts',
    post(
      EVENTS,
      event('ev6', {
        eventTime: '2020-01-01T00:00:00.000000Z',
        reportingComponent: 'bad name!',
        reportingInstance: 'x'.repeat(129),
        action: 'x'.repeat(129),
        reason: 'x'.repeat(129),
        message: 'x'.repeat(1025),
      }),
    ),
  ),
  row('event of the new group', post(NEW_EVENTS, newEvent('ev7')), get(`${EVENTS}/ev7`)),
  row(
    'event of the new group, wrong',
    post(NEW_EVENTS, {
      metadata: { name: 'ev8' },
      regarding: { namespace: '{ns}' },
      type: 'Odd',
      deprecatedCount: 2,
      deprecatedSource: { component: 'c' },
      deprecatedFirstTimestamp: '2020-01-01T00:00:00Z',
      deprecatedLastTimestamp: '2020-01-01T00:00:00Z',
      series: { count: 1 },
    }),
  ),
  row('event of the new group, wrong name', post(NEW_EVENTS, newEvent('Not_A_Name'))),
  row('event with a wrong name', post(EVENTS, event('Not_A_Name'))),
  row(
    'event of the new group: changes',
    post(NEW_EVENTS, newEvent('ev9')),
    patch(`${NEW_EVENTS}/ev9`, { note: 'Otherwise.', reason: 'Other', action: 'Other', regarding: { name: 'y' } }),
    patch(`${NEW_EVENTS}/ev9`, { series: { count: 2, lastObservedTime: '2020-01-01T00:00:01.000000Z' } }),
    get(`${NEW_EVENTS}/missing`),
  ),
  row(
    'event: as a table, from a controller',
    post(EVENTS, () =>
      event('ev12', {
        lastTimestamp: `${new Date().toISOString().slice(0, 19)}Z`,
        reportingComponent: 'example.com/tester',
        reportingInstance: 'one',
        series: { count: 3 },
      }),
    ),
    get(`${EVENTS}/ev12`, TABLE),
    get(`${NEW_EVENTS}/ev12`, TABLE),
  ),
  row('event: put of what is not there', put(`${EVENTS}/ev10`, event('ev10'))),
  row(
    'event: count and time',
    post(EVENTS, event('ev11', { count: 1 })),
    patch(`${EVENTS}/ev11`, { count: 5, lastTimestamp: '2020-01-01T00:00:00Z' }),
    get(`${EVENTS}/ev11`),
  ),
]

const secret = (name: string, type: string, data: JsonObject = {}, more: JsonObject = {}): JsonObject => ({
  metadata: { name },
  type,
  data,
  ...more,
})
const secretRow = (title: string, ...bodies: JsonObject[]): ParityRow =>
  row(`secret: ${title}`, ...bodies.map((body) => post(SECRETS, body)))

const data: readonly ParityRow[] = [
  secretRow(
    'tls',
    secret('t1', 'kubernetes.io/tls'),
    secret('t1', 'kubernetes.io/tls', { 'tls.crt': base64('c') }),
    secret('t1', 'kubernetes.io/tls', { 'tls.crt': base64('c'), 'tls.key': '' }),
  ),
  secretRow(
    'registry',
    secret('t2', 'kubernetes.io/dockerconfigjson'),
    secret('t2', 'kubernetes.io/dockerconfigjson', { '.dockerconfigjson': base64('{"auths":{}}') }),
    secret('t2b', 'kubernetes.io/dockercfg'),
    secret('t2b', 'kubernetes.io/dockercfg', { '.dockercfg': base64('{}') }),
  ),
  secretRow(
    'people',
    secret('t3', 'kubernetes.io/basic-auth', { other: base64('x') }),
    secret('t3', 'kubernetes.io/basic-auth', { username: '' }),
    secret('t3b', 'kubernetes.io/ssh-auth', { 'ssh-privatekey': '' }),
  ),
  secretRow('account', secret('t4', 'kubernetes.io/service-account-token')),
  secretRow('any other type', secret('t5', 'example.com/x', { a: base64('b') })),
  secretRow('base64 that is none', secret('t6', 'Opaque', { a: '&&&' })),
  secretRow('too large', secret('t7', 'Opaque', { a: base64('x'.repeat(1024 * 1024 + 1)) })),
  secretRow('as large as it may be', secret('t7b', 'Opaque', { a: base64('x'.repeat(1024)) }, { immutable: false })),
  row(
    'secret: changes of an immutable one',
    post(SECRETS, { metadata: { name: 't8' }, immutable: true, stringData: { a: 'b' } }),
    patch(`${SECRETS}/t8`, { stringData: { a: 'c' } }),
    patch(`${SECRETS}/t8`, { metadata: { labels: { a: 'b' } } }),
  ),
  row(
    'secret: select by type',
    post(SECRETS, secret('t9', 'example.com/rare', { a: base64('b') })),
    get(`${SECRETS}?fieldSelector=type%3Dexample.com%2Frare`),
  ),
  row('config map: too large', post(MAPS, { metadata: { name: 'm1' }, data: { a: 'x'.repeat(1024 * 1024 + 1) } })),
  row(
    'config map: binary data',
    post(MAPS, { metadata: { name: 'm2' }, data: { a: 'é' }, binaryData: { b: base64('x') } }),
    get(`${MAPS}/m2`, TABLE),
  ),
  row('config map: a key in both', post(MAPS, { metadata: { name: 'm3' }, data: { a: 'x' }, binaryData: { a: base64('x') } })),
  row('config map: a number', post(MAPS, { metadata: { name: 'm4' }, data: { a: 1 } })),
  row('config map: binary data that is none', post(MAPS, { metadata: { name: 'm5' }, binaryData: { a: 'x' } })),
  row(
    'service account: everything',
    post(ACCOUNTS, {
      metadata: { name: 'a1' },
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: 'p' }],
      secrets: [{ name: 's' }],
    }),
    patch(`${ACCOUNTS}/a1`, { imagePullSecrets: [{ name: 'q' }] }, 'strategic'),
    patch(`${ACCOUNTS}/a1`, { secrets: [{ name: 's', kind: 'Secret' }] }, 'strategic'),
    get(`${ACCOUNTS}/a1`, TABLE),
    put(`${ACCOUNTS}/a1`, { metadata: { name: 'a1' } }),
  ),
  row('service account: a wrong name', post(ACCOUNTS, { metadata: { name: 'Not_A_Name' } })),
  row('service account: put of what is not there', put(`${ACCOUNTS}/a2`, { metadata: { name: 'a2' } })),
]

const phase = (value: string): Json => ({ status: { phase: value } })
const namespaces: readonly ParityRow[] = [
  row(
    'namespace: changes',
    post(NAMESPACES, { metadata: { name: '{ns}-change' }, spec: { finalizers: ['example.com/mine'] } }),
    patch(`${NAMESPACES}/{ns}-change`, { metadata: { labels: { a: 'b', 'kubernetes.io/metadata.name': 'other' } } }),
    patch(`${NAMESPACES}/{ns}-change/status`, phase('Terminating')),
    patch(`${NAMESPACES}/{ns}-change/status`, phase('Odd')),
    put(`${NAMESPACES}/{ns}-change/finalize`, { metadata: { name: '{ns}-change' }, spec: { finalizers: ['mine', 'example.com/mine'] } }),
    get(`${NAMESPACES}?fieldSelector=status.phase%3DActive%2Cmetadata.name%3D{ns}-change`, TABLE),
    put(`${NAMESPACES}/{ns}-change/finalize`, { metadata: { name: '{ns}-change' }, spec: { finalizers: ['kubernetes'] } }),
    del(`${NAMESPACES}/{ns}-change`),
  ),
  row('namespace: in a namespace', post(NAMESPACES, { metadata: { name: '{ns}-in', namespace: 'x' } }), del(`${NAMESPACES}/{ns}-in`)),
  // Through a selector that matches nothing: this is asked of clusters that others use.
  row('namespace: a collection is not deleted', del(`${NAMESPACES}?labelSelector=nobody%3Dhas-it`)),
]

/** The kinds with little to say for themselves. */
export const plainRows: readonly ParityRow[] = [...slices, ...leases, ...nodes, ...events, ...data, ...namespaces]
