import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row, type Step } from './parity-row.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const ROLES = `${RBAC}/namespaces/{ns}/roles`
const BINDINGS = `${RBAC}/namespaces/{ns}/rolebindings`
const CLUSTER_ROLES = `${RBAC}/clusterroles`
const CLUSTER_BINDINGS = `${RBAC}/clusterrolebindings`
const POLICIES = '/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const GROUP = 'rbac.authorization.k8s.io'

const rule = (more: JsonObject = {}): JsonObject => ({ apiGroups: [''], resources: ['pods'], verbs: ['get'], ...more })
const role = (name: string, ...rules: JsonObject[]): JsonObject => ({ metadata: { name }, rules })
const user = (name: string): JsonObject => ({ kind: 'User', name })
const binding = (name: string, subjects: readonly JsonObject[], roleRef: JsonObject = {}): JsonObject => ({
  metadata: { name },
  roleRef: { kind: 'Role', name: 'r', ...roleRef },
  subjects: [...subjects],
})
const clusterWide = (name: string) => `{ns}-${name}`

const roles: readonly ParityRow[] = [
  row(
    'role: everything',
    post(
      ROLES,
      role('r1', rule({ resourceNames: ['a', 'b'], verbs: ['get', 'list', '*'] }), {
        apiGroups: ['apps', ''],
        resources: ['*'],
        verbs: ['*'],
        resourceNames: [],
      }),
    ),
    get(`${ROLES}/r1`, TABLE),
    get(`${ROLES}/r1`),
  ),
  row('role: no rules', post(ROLES, { metadata: { name: 'r2' } }), get(`${ROLES}/r2`)),
  row(
    'role: rules that lack something',
    post(ROLES, role('r3', {}, rule({ verbs: [] }), { apiGroups: [''], verbs: ['get'] }, { resources: ['pods'], verbs: ['get'] })),
  ),
  row('role: paths', post(ROLES, role('r4', { nonResourceURLs: ['/healthz'], verbs: ['get'] }, rule({ nonResourceURLs: ['/x'] })))),
  row(
    'role: a text in place of a list',
    post(ROLES, { metadata: { name: 'r5' }, rules: [{ apiGroups: '', resources: ['pods'], verbs: ['get'] }] }),
  ),
  row(
    'role: put and patches',
    post(ROLES, role('r6', rule())),
    put(`${ROLES}/r6`, role('r6', rule({ verbs: ['list'] }))),
    patch(`${ROLES}/r6`, { rules: [rule(), rule({ verbs: [] })] }),
    patch(`${ROLES}/r6`, { rules: [rule({ verbs: ['watch'] })] }, 'strategic'),
    patch(`${ROLES}/r6`, { rules: null }),
    patch(`${ROLES}/r6`, [{ op: 'add', path: '/rules', value: [rule()] }], 'json'),
    del(`${ROLES}/r6`),
  ),
  row('role: put of what is not there', put(`${ROLES}/r7`, role('r7', rule())), get(`${ROLES}/r7`)),
  row(
    'role: put of what is not there, with a version',
    put(`${ROLES}/r7b`, { ...role('r7b', rule()), metadata: { name: 'r7b', resourceVersion: '5' } }),
  ),
  row(
    'role: apply by two',
    patch(`${ROLES}/r8?fieldManager=one`, { apiVersion: `${GROUP}/v1`, kind: 'Role', ...role('r8', rule()) }, 'apply'),
    patch(`${ROLES}/r8?fieldManager=two`, { apiVersion: `${GROUP}/v1`, kind: 'Role', ...role('r8', rule({ verbs: ['list'] })) }, 'apply'),
    patch(
      `${ROLES}/r8?fieldManager=two&force=true`,
      { apiVersion: `${GROUP}/v1`, kind: 'Role', ...role('r8', rule({ verbs: ['list'] })) },
      'apply',
    ),
  ),
  row(
    'role: list as a table',
    post(ROLES, { ...role('r9', rule()), metadata: { name: 'r9', labels: { set: 'roles' } } }),
    get(`${ROLES}?labelSelector=set%3Droles`),
    get(`${ROLES}?fieldSelector=rules%3Dx`),
  ),
  row(
    'cluster role',
    post(CLUSTER_ROLES, role(clusterWide('cr1'), { nonResourceURLs: ['/healthz', '/metrics*'], verbs: ['get'] }, rule())),
    get(`${CLUSTER_ROLES}/${clusterWide('cr1')}`, TABLE),
    patch(`${CLUSTER_ROLES}/${clusterWide('cr1')}`, { rules: [rule({ nonResourceURLs: ['/x'] })] }),
    del(`${CLUSTER_ROLES}/${clusterWide('cr1')}`),
  ),
  row(
    'cluster role of others',
    post(CLUSTER_ROLES, {
      metadata: { name: clusterWide('cr2') },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { nobody: 'has-it' } }] },
    }),
    del(`${CLUSTER_ROLES}/${clusterWide('cr2')}`),
  ),
  row(
    'cluster role of wrong others',
    post(CLUSTER_ROLES, { metadata: { name: clusterWide('cr3') }, aggregationRule: {} }),
    post(CLUSTER_ROLES, {
      metadata: { name: clusterWide('cr3') },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { 'bad key!': 'x' }, matchExpressions: [{ key: 'a', operator: 'In' }] }] },
    }),
  ),
]

const bindings: readonly ParityRow[] = [
  row(
    'role binding: everything',
    post(
      BINDINGS,
      binding('b1', [
        user('u'),
        { kind: 'Group', name: 'g' },
        { kind: 'ServiceAccount', name: 's' },
        { kind: 'ServiceAccount', name: 's', namespace: 'other', apiGroup: '' },
      ]),
    ),
    get(`${BINDINGS}/b1`, TABLE),
  ),
  row(
    'role binding: to a cluster role',
    post(BINDINGS, binding('b2', [user('u')], { apiGroup: GROUP, kind: 'ClusterRole' })),
    get(`${BINDINGS}/b2`, TABLE),
  ),
  row('role binding: of nobody', post(BINDINGS, { metadata: { name: 'b3' }, roleRef: { kind: 'Role', name: 'r' } })),
  row('role binding: to nothing', post(BINDINGS, { metadata: { name: 'b4' }, subjects: [user('u')] })),
  row('role binding: to something else', post(BINDINGS, binding('b5', [], { kind: 'Pod', name: 'a/b', apiGroup: 'apps' }))),
  row(
    'role binding: wrong subjects',
    post(
      BINDINGS,
      binding('b6', [
        { kind: 'User' },
        { kind: 'Robot', name: 'x' },
        {},
        { kind: 'ServiceAccount', name: 'Not_A_Name' },
        { kind: 'ServiceAccount', name: 's', apiGroup: GROUP },
        { kind: 'Group', name: 'g', apiGroup: 'apps' },
      ]),
    ),
  ),
  row(
    'role binding: changes',
    post(BINDINGS, binding('b7', [user('u')])),
    patch(`${BINDINGS}/b7`, { roleRef: { name: 'other' } }),
    patch(`${BINDINGS}/b7`, { roleRef: { name: 'other' } }, 'strategic'),
    patch(`${BINDINGS}/b7`, { subjects: [user('v')] }, 'strategic'),
    patch(`${BINDINGS}/b7`, { subjects: null }),
    put(`${BINDINGS}/b7`, binding('b7', [user('w'), user('w')], { kind: 'ClusterRole' })),
    del(`${BINDINGS}/b7`),
  ),
  row(
    'role binding: apply by two',
    patch(`${BINDINGS}/b8?fieldManager=one`, { apiVersion: `${GROUP}/v1`, kind: 'RoleBinding', ...binding('b8', [user('u')]) }, 'apply'),
    patch(`${BINDINGS}/b8?fieldManager=two`, { apiVersion: `${GROUP}/v1`, kind: 'RoleBinding', ...binding('b8', [user('v')]) }, 'apply'),
    patch(
      `${BINDINGS}/b8?fieldManager=one`,
      { apiVersion: `${GROUP}/v1`, kind: 'RoleBinding', ...binding('b8', [], { name: 'r2' }) },
      'apply',
    ),
  ),
  row(
    'cluster role binding',
    post(
      CLUSTER_BINDINGS,
      binding(clusterWide('cb1'), [{ kind: 'ServiceAccount', name: 's', namespace: 'n' }, user('u')], {
        kind: 'ClusterRole',
        name: 'view',
      }),
    ),
    get(`${CLUSTER_BINDINGS}/${clusterWide('cb1')}`, TABLE),
    patch(`${CLUSTER_BINDINGS}/${clusterWide('cb1')}`, { roleRef: { name: 'edit' } }),
    del(`${CLUSTER_BINDINGS}/${clusterWide('cb1')}`),
  ),
  row(
    'cluster role binding: to a role, of an account of no namespace',
    post(
      CLUSTER_BINDINGS,
      binding(clusterWide('cb2'), [
        { kind: 'ServiceAccount', name: 's' },
        { kind: 'User', name: 'u', namespace: 'n' },
      ]),
    ),
    del(`${CLUSTER_BINDINGS}/${clusterWide('cb2')}`),
  ),
]

const policy = (name: string, spec: JsonObject): JsonObject => ({ metadata: { name }, spec: { podSelector: {}, ...spec } })
const policyRow = (title: string, name: string, spec: JsonObject, ...more: Step[]): ParityRow =>
  row(`network policy: ${title}`, post(POLICIES, policy(name, spec)), ...more)
const from = (...peers: JsonObject[]): JsonObject => ({ ingress: [{ from: peers }] })
const ports = (...list: JsonObject[]): JsonObject => ({ ingress: [{ ports: list }] })

const policies: readonly ParityRow[] = [
  policyRow('defaults', 'n1', {}, get(`${POLICIES}/n1`, TABLE)),
  policyRow('defaults of both ways', 'n2', { egress: [{ to: [{ podSelector: {} }] }], ingress: [{}] }),
  policyRow(
    'everything',
    'n3',
    {
      podSelector: { matchLabels: { app: 'x' }, matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['a', 'b'] }] },
      policyTypes: ['Egress', 'Ingress'],
      ingress: [
        {
          from: [
            { namespaceSelector: { matchLabels: { a: 'b' } }, podSelector: {} },
            { ipBlock: { cidr: '192.0.2.0/24', except: ['192.0.2.128/25'] } },
          ],
          ports: [{ port: 80 }, { protocol: 'UDP', port: 'dns' }, { port: 100, endPort: 200 }, {}],
        },
      ],
      egress: [{ to: [{ ipBlock: { cidr: '2001:db8::/32' } }], ports: [{ protocol: 'SCTP' }] }],
    },
    get(`${POLICIES}/n3`, TABLE),
  ),
  policyRow('nothing selected', 'n4', { policyTypes: [], ingress: [], egress: [] }),
  row('network policy: no spec', post(POLICIES, { metadata: { name: 'n5' } })),
  policyRow('no peer', 'n6', from({})),
  policyRow('a block and another peer', 'n7', from({ ipBlock: { cidr: '192.0.2.0/24' }, podSelector: {} })),
  policyRow('wrong blocks', 'n8', from({ ipBlock: {} }, { ipBlock: { cidr: '192.0.2.0' } }, { ipBlock: { cidr: 'here/8' } })),
  policyRow(
    'exceptions that are none',
    'n9',
    from({ ipBlock: { cidr: '192.0.2.0/24', except: ['192.0.3.0/25', '192.0.2.0/24', '192.0.0.0/16', 'x', '2001:db8::/64'] } }),
  ),
  policyRow('wrong ports', 'n10', ports({ port: 0 }, { port: 70_000 }, { port: 'Not_A_Name' }, { port: 80, protocol: 'HTTP' })),
  policyRow(
    'ranges of ports',
    'n11',
    ports({ port: 90, endPort: 80 }, { port: 'web', endPort: 80 }, { endPort: 80 }, { port: 80, endPort: 70_000 }),
  ),
  policyRow('wrong selectors', 'n12', {
    podSelector: {
      matchLabels: { 'bad key!': 'bad value!' },
      matchExpressions: [
        { key: 'a', operator: 'Maybe' },
        { key: 'b', operator: 'In' },
        { key: 'c', operator: 'Exists', values: ['x'] },
        { key: '', operator: 'In', values: ['bad value!'] },
      ],
    },
    egress: [{ to: [{ namespaceSelector: { matchLabels: { '/x': 'y' } } }] }],
  }),
  policyRow('wrong types', 'n13', { policyTypes: ['Ingress', 'Sideways'] }),
  policyRow('too many types', 'n14', { policyTypes: ['Ingress', 'Egress', 'Ingress'] }),
  policyRow(
    'changes',
    'n15',
    ports({ port: 80 }),
    patch(`${POLICIES}/n15`, { spec: { ingress: [{ ports: [{ port: 81 }] }] } }),
    patch(`${POLICIES}/n15`, { metadata: { labels: { a: 'b' } } }),
    patch(`${POLICIES}/n15`, { spec: { ingress: [{ ports: [{ port: 82 }] }] } }, 'strategic'),
    patch(`${POLICIES}/n15`, { spec: { ingress: [{ from: [{}] }] } }),
    put(`${POLICIES}/n15`, policy('n15', {})),
    put(`${POLICIES}/n15b`, policy('n15b', {})),
    del(`${POLICIES}/n15`),
  ),
]

/** RBAC and NetworkPolicies: stored, and kept as orderly as on the real server. */
export const policyRows: readonly ParityRow[] = [...roles, ...bindings, ...policies]
