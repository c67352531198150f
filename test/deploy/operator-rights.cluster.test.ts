import { randomBytes } from 'node:crypto'
import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import { apiRequest } from '@thv/testkit/cluster/http-request'
import { sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { describeHelm } from '@thv/testkit/helm/describe-helm'
import { openHelm } from '@thv/testkit/helm/helm'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { runnerRules } from '../../apps/operator/src/proxy/rbac.ts'
import { HELM_LIMIT_MS, OPERATOR_CHART } from './charts.ts'
import { kubectl } from './kubectl.ts'

/* The rights that the operator's ServiceAccount has and has not, as the API server sees the rules of the chart. */

/** How long the API server may take until it knows new rules. */
const RULES_LIMIT_MS = 60_000

const OWN_KINDS = [
  'mcpexternalauthconfigs',
  'mcpgroups',
  'mcpregistries',
  'mcpremoteproxies',
  'mcpserverentries',
  'mcpservers',
  'mcptoolconfigs',
  'virtualmcpcompositetooldefinitions',
  'virtualmcpservers',
]
const HAS_FINALIZER = ['mcpexternalauthconfigs', 'mcpgroups', 'mcpregistries', 'mcpservers', 'mcptoolconfigs']
const OWNS_OBJECTS = ['mcpexternalauthconfigs', 'mcpregistries', 'mcpremoteproxies', 'mcpservers', 'virtualmcpservers']
const APPLIED = [
  ['', 'configmaps'],
  ['', 'serviceaccounts'],
  ['', 'services'],
  ['apps', 'deployments'],
  ['networking.k8s.io', 'networkpolicies'],
  ['rbac.authorization.k8s.io', 'roles'],
  ['rbac.authorization.k8s.io', 'rolebindings'],
] as const
const READ = [
  ['', 'pods'],
  ['', 'secrets'],
  ['gateway.networking.k8s.io', 'gateways'],
  ['gateway.networking.k8s.io', 'httproutes'],
  ['gateway.networking.k8s.io', 'referencegrants'],
] as const
const GROUP = 'toolhive.stacklok.dev'

/** As far as the rights of a runner depend on it. */
const SERVER = normaliseMcpServer({ spec: { image: 'x:1' } }).spec

interface Question {
  readonly group: string
  readonly resource: string
  readonly verb: string
  readonly namespace?: string
  readonly name?: string
}

describeHelm('rights of the operator', () => {
  const release = `rights-${randomBytes(4).toString('hex')}`
  const names = { cluster: `${release}-cluster`, single: `${release}-single` }
  let home: string
  let watched: string
  let other: string

  beforeAll(async () => {
    const helm = await openHelm()
    home = await testNamespace('rights-home')
    watched = await testNamespace('rights-watched')
    other = await testNamespace('rights-other')
    const scopes = {
      [names.cluster]: [],
      [names.single]: ['operator.rbac.scope=namespace', `operator.rbac.allowedNamespaces={${watched}}`],
    }
    for (const [name, set] of Object.entries(scopes)) {
      const objects = await helm.template({ name, chart: OPERATOR_CHART, namespace: home, set: [`fullnameOverride=${name}`, ...set] })
      // Nothing runs here; only rights are checked.
      const rights = objects.split(/^---$/m).filter((text) => !/^kind: (Deployment|Service|ValidatingWebhookConfiguration)$/m.test(text))
      expect(kubectl(['apply', '-f', '-'], rights.join('---'))).toMatchObject({ code: 0 })
    }
    for (const account of Object.values(names)) {
      // One of each of its Roles.
      const known = [
        { group: '', resource: 'configmaps', verb: 'get', namespace: watched },
        { group: 'coordination.k8s.io', resource: 'leases', verb: 'create', namespace: home },
      ]
      for (const question of known)
        await vi.waitFor(async () => expect(await may(account, question)).toBe(true), { timeout: RULES_LIMIT_MS, interval: 200 })
    }
  }, HELM_LIMIT_MS)

  const user = (account: string) => `system:serviceaccount:${home}:${account}`

  async function may(account: string, { group, resource, verb, namespace = '', name = '' }: Question): Promise<boolean> {
    const [base = '', subresource = ''] = resource.split('/')
    const answer = await apiRequest(sharedCluster(), '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      method: 'POST',
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user: user(account),
          groups: ['system:serviceaccounts', `system:serviceaccounts:${home}`, 'system:authenticated'],
          resourceAttributes: { group, resource: base, subresource, verb, namespace, name },
        },
      },
    })
    return answer.json<{ status: { allowed: boolean } }>().status.allowed
  }

  async function judged(account: string, questions: readonly Question[]): Promise<Map<string, boolean>> {
    const title = ({ group, resource, verb, name }: Question) => `${verb} ${group}/${resource}${name ? ` ${name}` : ''}`
    const answers = await Promise.all(questions.map(async (each) => [title(each), await may(account, each)] as const))
    return new Map(answers)
  }

  /** Everything that the operator does in a namespace that it watches. */
  const needed = (namespace: string): Question[] => [
    ...OWN_KINDS.flatMap((resource) => ['get', 'list', 'watch'].map((verb) => ({ group: GROUP, resource, verb, namespace }))),
    ...OWN_KINDS.map((resource) => ({ group: GROUP, resource: `${resource}/status`, verb: 'patch', namespace })),
    ...HAS_FINALIZER.map((resource) => ({ group: GROUP, resource, verb: 'patch', namespace })),
    ...OWNS_OBJECTS.map((resource) => ({ group: GROUP, resource: `${resource}/finalizers`, verb: 'update', namespace })),
    ...APPLIED.flatMap(([group, resource]) =>
      ['get', 'list', 'watch', 'create', 'patch', 'delete'].map((verb) => ({ group, resource, verb, namespace })),
    ),
    ...READ.flatMap(([group, resource]) => ['get', 'list', 'watch'].map((verb) => ({ group, resource, verb, namespace }))),
    { group: '', resource: 'pods', verb: 'delete', namespace },
    // The seal of a VirtualMCPServer is made once; keys of authorization servers are replaced, too.
    ...['create', 'update'].map((verb) => ({ group: '', resource: 'secrets', verb, namespace })),
    // Of MCPRegistries with several replicas.
    ...['get', 'create', 'patch', 'delete'].map((verb) => ({ group: 'policy', resource: 'poddisruptionbudgets', verb, namespace })),
    // Held so that it can be granted to registry servers.
    ...['create', 'get', 'update'].map((verb) => ({ group: 'coordination.k8s.io', resource: 'leases', verb, namespace })),
    ...['create', 'patch'].map((verb) => ({ group: 'events.k8s.io', resource: 'events', verb, namespace })),
  ]

  /** Operations that it never needs, so that a stolen token cannot do them either. */
  const forbidden = (namespace: string): Question[] => [
    ...['create', 'update', 'delete'].flatMap((verb) => OWN_KINDS.map((resource) => ({ group: GROUP, resource, verb, namespace }))),
    // Entries are only judged: neither they nor proxies are changed beside their status.
    ...['mcpserverentries', 'mcpremoteproxies'].map((resource) => ({ group: GROUP, resource, verb: 'patch', namespace })),
    ...['patch', 'delete'].map((verb) => ({ group: '', resource: 'secrets', verb, namespace })),
    // Routes are other people's.
    ...['gateways', 'httproutes', 'referencegrants', '*'].flatMap((resource) =>
      ['create', 'update', 'patch', 'delete', 'deletecollection'].map((verb) => ({
        group: 'gateway.networking.k8s.io',
        resource,
        verb,
        namespace,
      })),
    ),
    ...['create', 'update', 'patch', 'deletecollection'].map((verb) => ({ group: '', resource: 'pods', verb, namespace })),
    ...['pods/exec', 'pods/portforward'].map((resource) => ({ group: '', resource, verb: 'create', namespace })),
    ...['escalate', 'bind'].map((verb) => ({ group: 'rbac.authorization.k8s.io', resource: 'roles', verb, namespace })),
    ...['users', 'serviceaccounts'].map((resource) => ({ group: '', resource, verb: 'impersonate', namespace })),
    { group: '', resource: 'serviceaccounts/token', verb: 'create', namespace },
    ...['patch', 'delete'].map((verb) => ({ group: 'coordination.k8s.io', resource: 'leases', verb, namespace })),
    { group: '', resource: 'namespaces', verb: 'create' },
    { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', verb: 'create' },
    { group: 'rbac.authorization.k8s.io', resource: 'clusterrolebindings', verb: 'create' },
    { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', verb: 'patch' },
  ]

  describe.each(['cluster', 'single'] as const)('%s', (scope) => {
    it('cover what it does [000-099] [004-014]', async () => {
      const answers = await judged(names[scope], needed(watched))
      expect([...answers].filter(([, allowed]) => !allowed)).toEqual([])
    })

    it('cover nothing else [000-008] [000-100] [004-014]', async () => {
      const answers = await judged(names[scope], forbidden(watched))
      expect([...answers].filter(([, allowed]) => allowed)).toEqual([])
    })

    it('cover no Lease outside of the watched namespaces but its own', async () => {
      const lease = { group: 'coordination.k8s.io', resource: 'leases', namespace: home }
      const own = 'toolhive-operator-leader-election'
      const answers = await judged(names[scope], [
        { ...lease, verb: 'create' },
        ...['get', 'update', 'delete'].flatMap((verb) => [own, 'somebody-else'].map((name) => ({ ...lease, verb, name }))),
      ])
      const allowed = [...answers].filter(([, yes]) => yes).map(([title]) => title)
      const leases = 'coordination.k8s.io/leases'
      const others = scope === 'cluster' ? ['somebody-else'] : []
      const known = ['get', 'update'].flatMap((verb) => [own, ...others].map((name) => `${verb} ${leases} ${name}`))
      expect(allowed).toEqual([`create ${leases}`, ...known])
    })

    it('let it make the Role of a runner and bind it', async () => {
      const name = `${scope}-runner`
      const role = { metadata: { name }, rules: runnerRules({ name: 'github', spec: { ...SERVER, transport: 'stdio' } }) }
      expect(await as(names[scope], 'roles', role)).toBe(201)
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name }
      const subjects = [{ kind: 'ServiceAccount', name, namespace: watched }]
      expect(await as(names[scope], 'rolebindings', { metadata: { name }, roleRef, subjects })).toBe(201)
    })

    it('let it grant nothing that it does not hold', async () => {
      const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['delete'] }]
      expect(await as(names[scope], 'roles', { metadata: { name: `${scope}-too-much` }, rules })).toBe(403)
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' }
      const subjects = [{ kind: 'ServiceAccount', name: 'x', namespace: watched }]
      expect(await as(names[scope], 'rolebindings', { metadata: { name: `${scope}-admin` }, roleRef, subjects })).toBe(403)
    })
  })

  it('in namespace scope end at the namespace', async () => {
    const answers = await judged(names.single, [
      ...needed(other),
      ...needed(home),
      { group: '', resource: 'secrets', verb: 'list' },
      { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', verb: 'list' },
    ])
    // In its own namespace it makes its own Lease.
    expect([...answers].filter(([, allowed]) => allowed)).toEqual([['create coordination.k8s.io/leases', true]])
  })

  it('in cluster scope reach every namespace', async () => {
    const answers = await judged(names.cluster, [
      ...needed(other),
      { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', verb: 'list' },
    ])
    expect([...answers].filter(([, allowed]) => !allowed)).toEqual([])
  })

  /** Creates an object of RBAC in the watched namespace with the operator's rights; returns the status. */
  async function as(account: string, resource: string, body: object): Promise<number> {
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${watched}/${resource}`
    const headers = { 'Impersonate-User': user(account) }
    return (await apiRequest(sharedCluster(), path, { method: 'POST', headers, body })).status
  }
})
