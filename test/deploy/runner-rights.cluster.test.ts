import { bearerToken, createKubeClient, type KubeClient, type PolicyRule } from '@thv/kube'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../apps/operator/src/testing/operator-harness.ts'
import { workloadSteps } from '../../apps/operator/src/testing/workload-steps.ts'

/* The API server is asked what the account of a runner may do, as the operator made it. */

const IMAGE = 'example.test/server:1'

describeCluster('rights of the runner', () => {
  let operator: OperatorUnderTest
  let other: string

  beforeAll(async () => {
    operator = await startOperator()
    other = await testNamespace('runner-rights-other')
    const steps = workloadSteps(operator, 'MCPServer')
    await steps.create('web', { image: IMAGE, transport: 'streamable-http' })
    await steps.create('piped', { image: IMAGE, transport: 'stdio' })
    for (const name of ['web', 'piped']) await steps.settled(name)
  })
  afterAll(() => operator?.stop())

  const OWN = ['get', 'list', 'watch', 'patch', 'delete']
  const common = (name: string): PolicyRule[] => [
    { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['create'] },
    { apiGroups: ['apps'], resources: ['statefulsets'], resourceNames: [name], verbs: OWN },
    { apiGroups: [''], resources: ['services'], verbs: ['create'] },
    { apiGroups: [''], resources: ['services'], resourceNames: [`mcp-${name}`, `mcp-${name}-headless`], verbs: OWN },
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ]

  test.each([
    ['web', common('web')],
    [
      'piped',
      [
        ...common('piped'),
        { apiGroups: [''], resources: ['pods/attach'], resourceNames: ['piped-0'], verbs: ['create', 'get'] },
        { apiGroups: [''], resources: ['pods'], resourceNames: ['piped-0'], verbs: ['delete'] },
      ],
    ],
  ])('of %s are those on its own objects and nothing more [002-213]', async (name, expected) => {
    const client = await clientOf(name)
    const own = await eventually('the API server knows the rights', async () => {
      const rules = await rulesOf(client, operator.namespace)
      return rules.some(({ resources }) => resources?.includes('statefulsets')) && rules
    })
    // Every authenticated user has these, in every namespace.
    const everybodys = new Set((await rulesOf(client, other)).map(textOf))
    expect([...everybodys].filter((rule) => !/selfsubject/.test(rule))).toEqual([])
    expect(
      own
        .map(textOf)
        .filter((rule) => !everybodys.has(rule))
        .toSorted(),
    ).toEqual(expected.map(textOf).toSorted())
    await client.close()
  })

  async function clientOf(name: string): Promise<KubeClient> {
    const account = `/api/v1/namespaces/${operator.namespace}/serviceaccounts/${name}-proxy-runner/token`
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const { status } = (await operator.admin.raw('POST', account, { body })).json() as { status: { token: string } }
    const { url, caPem } = sharedCluster()
    return createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(status.token) })
  }
})

async function rulesOf(client: KubeClient, namespace: string): Promise<PolicyRule[]> {
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } }
  const answer = await client.raw('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { body })
  return (answer.json() as { status: { resourceRules: PolicyRule[] } }).status.resourceRules
}

function textOf({ apiGroups, resources, resourceNames = [], verbs }: PolicyRule): string {
  return JSON.stringify([apiGroups, resources, resourceNames, verbs].map((list) => (list ?? []).toSorted()))
}
