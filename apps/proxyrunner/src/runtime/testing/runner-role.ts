import {
  bearerToken,
  createKubeClient,
  isForbidden,
  type KubeClient,
  type PolicyRule,
  pods,
  roleBindings,
  roles,
  serviceAccounts,
} from '@thv/kube'
import { type ClusterAccess, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { eventually } from './runtime-fixtures.ts'

/** The rights that the operator gives the runner of server X, and nothing else. */
export function runnerRules(name: string): PolicyRule[] {
  const verbs = ['get', 'list', 'watch', 'patch', 'delete']
  return [
    { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['create'] },
    { apiGroups: ['apps'], resources: ['statefulsets'], resourceNames: [name], verbs },
    { apiGroups: [''], resources: ['services'], verbs: ['create'] },
    { apiGroups: [''], resources: ['services'], resourceNames: [`mcp-${name}`, `mcp-${name}-headless`], verbs },
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    { apiGroups: [''], resources: ['pods/attach'], resourceNames: [`${name}-0`], verbs: ['create', 'get'] },
    { apiGroups: [''], resources: ['pods'], resourceNames: [`${name}-0`], verbs: ['delete'] },
  ]
}

export function adminClient(cluster: ClusterAccess = sharedCluster()): KubeClient {
  return createKubeClient({ server: cluster.url, tls: { ca: cluster.caPem }, auth: bearerToken(cluster.adminToken) })
}

/** A client with the rights of a runner, by a token of the API server itself. */
export async function runnerClient(
  admin: KubeClient,
  place: { namespace: string; name: string; cluster: ClusterAccess },
): Promise<KubeClient> {
  const { namespace, name, cluster } = place
  const token = await runnerToken(admin, namespace, name)
  const { url, caPem } = cluster
  const client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(token) })
  await eventually('the API server knows the rights', () => mayListPods(client, namespace))
  return client
}

/** The rights come with one Role and one binding: who may this may all of it. */
async function mayListPods(client: KubeClient, namespace: string): Promise<boolean> {
  try {
    await client.list(pods, { namespace, limit: 1 })
    return true
  } catch (error) {
    if (isForbidden(error)) return false
    throw error
  }
}

/** The account of a runner with its rights, and a token for it. */
export async function runnerToken(admin: KubeClient, namespace: string, name: string): Promise<string> {
  const account = `${name}-proxy-runner`
  const metadata = { namespace, name: account }
  await admin.apply(serviceAccounts, { metadata }, { fieldManager: 'test' })
  await admin.apply(roles, { metadata, rules: runnerRules(name) }, { fieldManager: 'test' })
  const binding = {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
  }
  await admin.apply(roleBindings, binding, { fieldManager: 'test' })
  const answer = await admin.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  })
  const { status } = answer.json() as { status: { token: string } }
  return status.token
}
