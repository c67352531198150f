import {
  bearerToken,
  createKubeClient,
  deployments,
  type KubeClient,
  type KubeObject,
  networkPolicies,
  type PodTemplateSpec,
  type ResourceType,
  roleBindings,
  roles,
  serviceAccounts,
  services,
  statefulSets,
} from '@thv/kube'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { networkPolicy } from './network/network-policy.ts'
import { resolvePermissionProfile } from './network/permission-profile.ts'
import { objectsOf, WORKLOAD_CASES, type WorkloadCase } from './testing/workload-cases.ts'

describeCluster('the objects of a workload on the API server', () => {
  let client: KubeClient
  let namespace: string

  beforeAll(async () => {
    const { url, caPem, adminToken } = sharedCluster()
    client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) })
    namespace = await testNamespace('objects')
  })
  afterAll(() => client?.close())

  const here = <T extends KubeObject>(object: T): T => ({ ...object, metadata: { ...object.metadata, namespace } })
  const apply = <T extends KubeObject>(type: ResourceType<T>, object: T) =>
    client.apply(type, here(object), { fieldManager: 'thv-operator', force: true, fieldValidation: 'Strict' })

  test.each(WORKLOAD_CASES)('it takes all objects of $name, and a second time nothing changes', async (workload) => {
    const objects = objectsOf({ ...workload, resource: `${workload.resource}-${WORKLOAD_CASES.indexOf(workload)}` })
    const all: [ResourceType, KubeObject][] = [
      ...objects.access.serviceAccounts.map((object): [ResourceType, KubeObject] => [serviceAccounts, object]),
      ...objects.access.roles.map((object): [ResourceType, KubeObject] => [roles, object]),
      ...objects.access.roleBindings.map((object): [ResourceType, KubeObject] => [roleBindings, withoutNamespaces(object)]),
      ...('networkPolicy' in objects && objects.networkPolicy
        ? [[networkPolicies, objects.networkPolicy] as [ResourceType, KubeObject]]
        : []),
      ...(objects.alias ? [[services, objects.alias] as [ResourceType, KubeObject]] : []),
      [services, objects.service],
      [deployments, objects.deployment],
    ]
    for (const [type, object] of all) {
      const first = await apply(type, object)
      const second = await apply(type, object)
      // Controllers may have written the status in between, but not the spec.
      expect(second.metadata.generation).toBe(first.metadata.generation)
    }
  })

  test.each(WORKLOAD_CASES.filter(({ kind }) => kind === 'MCPServer'))(
    'it takes a StatefulSet of the pod patch of $name',
    async (workload) => {
      const objects = objectsOf(workload)
      const patch = 'pod' in objects ? objects.pod.contribution?.runConfig?.k8s_pod_template_patch : undefined
      const { metadata, spec } = patch as PodTemplateSpec
      const labels = { ...metadata?.labels, app: 'x' }
      // As the runner does it: the image comes from elsewhere.
      const containers = spec?.containers.map((container) => (container.name === 'mcp' ? { ...container, image: 'x:1' } : container)) ?? []
      const template = { metadata: { ...metadata, labels }, spec: { ...spec, containers } }
      const set = {
        metadata: { name: `set-${WORKLOAD_CASES.indexOf(workload)}` },
        spec: { serviceName: 'x', selector: { matchLabels: { app: 'x' } }, template },
      }
      const live = await apply(statefulSets, set)
      expect(live.spec?.template?.spec?.containers.map(({ name }) => name)).toEqual(containers.map(({ name }) => name))
    },
  )

  test('the transport may change from stdio to HTTP and back', async () => {
    const at = (transport: string): WorkloadCase => ({
      name: transport,
      kind: 'MCPServer',
      resource: 'changing',
      spec: { image: 'x', transport },
    })
    for (const transport of ['stdio', 'streamable-http', 'stdio', 'sse']) {
      const live = await apply(deployments, objectsOf(at(transport)).deployment)
      expect(live.spec?.['strategy']).toMatchObject({ type: transport === 'stdio' ? 'Recreate' : 'RollingUpdate' })
    }
  })

  test('a type of Service may change and come back', async () => {
    const at = (serviceType: string): WorkloadCase => ({
      name: serviceType,
      kind: 'MCPServer',
      resource: 'exposed',
      spec: { image: 'x', serviceType },
    })
    for (const serviceType of ['ClusterIP', 'NodePort', 'LoadBalancer', 'ClusterIP']) {
      expect((await apply(services, objectsOf(at(serviceType)).service)).spec?.type).toBe(serviceType)
    }
  })

  test('it accepts every kind of NetworkPolicy rule', async () => {
    const documents = [
      { network: { outbound: { allow_port: [443, 53] } } },
      { network: { outbound: { allow_host: ['192.0.2.7', '2001:db8::1', '10.1.2.3/8'], allow_port: [443] } } },
      { network: { outbound: { allow_host: ['::/0'] } } },
    ]
    for (const [index, document] of documents.entries()) {
      const { profile } = resolvePermissionProfile({
        profile: { type: 'configmap', name: 'p', key: 'k' },
        lookup: { configMap: () => ({ uid: 'u', resourceVersion: '1', data: { k: JSON.stringify(document) } }) },
      })
      if (profile === undefined) throw new Error('no profile')
      const policy = networkPolicy({ name: `p${index}`, namespace, transport: 'sse', mcpPort: 9000, profile })
      expect((await apply(networkPolicies, policy)).spec?.egress).toHaveLength(policy.spec?.egress?.length ?? 0)
    }
  })
})

/** The golden namespace is not the one of the test. */
function withoutNamespaces<T extends { subjects?: { namespace?: string }[] }>(binding: T): T {
  return { ...binding, subjects: binding.subjects?.map((subject) => ({ ...subject, namespace: 'default' })) }
}
