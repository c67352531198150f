import { fileURLToPath } from 'node:url'
import type { PodSpec } from '@thv/kube'
import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import { describe, expect, it } from 'vitest'
import type { Contribution } from './contribution.ts'
import { type ProxyDeploymentInput, proxyDeployment } from './proxy-deployment.ts'
import { objectsOf, SETTINGS, WORKLOAD_CASES } from './testing/workload-cases.ts'

const golden = (name: string) => fileURLToPath(new URL(`./testing/goldens/proxy-${name}.golden.json`, import.meta.url))

const input = (more: Partial<ProxyDeploymentInput> = {}, spec: Record<string, unknown> = {}): ProxyDeploymentInput => ({
  kind: 'MCPServer',
  name: 'demo',
  namespace: 'team-a',
  spec: normaliseMcpServer({ spec: { image: 'x', ...spec } }).spec,
  settings: SETTINGS,
  runConfigChecksum: 'abc',
  generation: 3,
  contributions: [],
  replicas: undefined,
  ...more,
})

function podSpecOf(given: ProxyDeploymentInput): PodSpec {
  const spec = proxyDeployment(given).deployment.spec?.template?.spec
  if (spec === undefined) throw new Error('no pod spec')
  return spec
}

const envOf = (given: ProxyDeploymentInput) => (podSpecOf(given).containers[0]?.['env'] ?? []) as { name: string; value?: string }[]

describe('proxyDeployment', () => {
  it.each(WORKLOAD_CASES)('makes of $name what its golden file says', async (workload) => {
    await expect(`${JSON.stringify(objectsOf(workload), undefined, 2)}\n`).toMatchFileSnapshot(golden(workload.name))
  })

  it('holds the pods of a remote proxy to the pod security level, and its account to be another', () => {
    const made = (podTemplateSpec: Record<string, unknown>, podSecurity: 'privileged' | 'baseline') => {
      const spec = { ...normaliseMcpServer({ spec: { image: 'x', transport: 'streamable-http' } }).spec, podTemplateSpec }
      return proxyDeployment(input({ kind: 'MCPRemoteProxy', spec, settings: { ...SETTINGS, podSecurity } }))
    }
    const asks = { spec: { containers: [{ name: 'side', image: 'i', securityContext: { privileged: true } }] } }
    expect(made(asks, 'privileged')).toMatchObject({ problems: [], conditions: [{}, { type: 'PodSecurity', status: 'False' }] })
    expect(made(asks, 'baseline').problems).toMatchObject([
      { path: 'spec.podTemplateSpec.spec.containers[side].securityContext.privileged' },
    ])
    expect(made({}, 'baseline').problems).toEqual([])
    const account = (serviceAccount: string) => {
      const spec = { ...normaliseMcpServer({ spec: { image: 'x', transport: 'sse' } }).spec, serviceAccount }
      return proxyDeployment(input({ kind: 'MCPRemoteProxy', spec })).problems
    }
    expect(account('other-proxy-runner')).toMatchObject([{ path: 'spec.serviceAccount' }])
    expect(account('mine')).toEqual([])
  })

  it('leaves the number of pods alone unless told one', () => {
    expect(proxyDeployment(input()).deployment.spec).not.toHaveProperty('replicas')
    expect(proxyDeployment(input({ replicas: 0 })).deployment.spec?.replicas).toBe(0)
  })

  it('rolls pods for what they see, and for nothing else', () => {
    const template = (more: Partial<ProxyDeploymentInput>, spec = {}) =>
      JSON.stringify(proxyDeployment(input(more, spec)).deployment.spec?.template)
    const same = template({})
    expect(template({ replicas: 4 }, { replicas: 4, serviceType: 'NodePort', groupRef: 'g', backendReplicas: 3 })).toBe(same)
    for (const more of [{ runConfigChecksum: 'other' }, { generation: 4 }, { restartedAt: 'now' }, { secretsHash: 'other' }]) {
      expect(template(more)).not.toBe(same)
    }
  })

  it('sets each variable once and says which values are not used', () => {
    const contributions: Contribution[] = [
      { env: [{ name: 'TOOLHIVE_SECRETS_PROVIDER', value: 'environment' }] },
      {
        env: [
          { name: 'TOOLHIVE_SECRETS_PROVIDER', value: 'environment' },
          { name: 'TOOLHIVE_SECRET_A', value: 'a' },
        ],
      },
    ]
    const overrides = {
      proxyDeployment: {
        env: [
          { name: 'TOOLHIVE_SECRET_A', value: 'b' },
          { name: 'THV_RUNCONFIG_CHECKSUM', value: 'forged' },
        ],
      },
    }
    const given = input({ contributions }, { resourceOverrides: overrides })
    const names = envOf(given).map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(envOf(given)).toContainEqual({ name: 'TOOLHIVE_SECRET_A', value: 'a' })
    expect(JSON.stringify(envOf(given))).not.toContain('forged')
    expect(proxyDeployment(given).shadowedVariables).toEqual(['THV_RUNCONFIG_CHECKSUM', 'TOOLHIVE_SECRET_A'])
  })

  it('mounts a volume once that two parts need, and refuses to mount two things under one name', () => {
    const ca: Contribution = { volumes: [{ name: 'ca', configMap: { name: 'ca' } }], volumeMounts: [{ name: 'ca', mountPath: '/ca' }] }
    expect(podSpecOf(input({ contributions: [ca, ca] }))['volumes']).toHaveLength(3)
    expect(() => proxyDeployment(input({ contributions: [ca, { volumes: [{ name: 'ca', emptyDir: {} }] }] }))).toThrow(
      'disagree on name ca',
    )
  })

  it('gives no token to the proxy of a remote server', () => {
    expect(podSpecOf(input())['automountServiceAccountToken']).toBe(true)
    const remote = podSpecOf(input({ kind: 'MCPRemoteProxy' }))
    expect(remote['automountServiceAccountToken']).toBe(false)
    expect(JSON.stringify(remote)).not.toContain('THV_MCPSERVER_GENERATION')
  })

  it('waits longer for the start than the runner waits for its file', () => {
    const probe = podSpecOf(input()).containers[0]?.['startupProbe']
    const { periodSeconds = 0, failureThreshold = 0 } = (probe ?? {}) as Record<string, number>
    expect(periodSeconds * failureThreshold).toBeGreaterThan(180)
  })

  it('does not use podTemplateSpec of an MCPServer, which is about other pods', () => {
    const podTemplateSpec = { spec: { nodeSelector: { a: 'b' } } }
    expect(podSpecOf(input({}, { podTemplateSpec }))).not.toHaveProperty('nodeSelector')
  })

  it.each<[string, Record<string, unknown>, string]>([
    [
      'a label',
      { resourceOverrides: { proxyDeployment: { labels: { 'a b': 'c' } } } },
      'spec.resourceOverrides.proxyDeployment.labels[a b]',
    ],
    [
      'a pod label',
      { resourceOverrides: { proxyDeployment: { podTemplateMetadataOverrides: { labels: { a: 'b c' } } } } },
      'spec.resourceOverrides.proxyDeployment.podTemplateMetadataOverrides.labels[a]',
    ],
    [
      'a Service annotation',
      { resourceOverrides: { proxyService: { annotations: { 'a b': 'c' } } } },
      'spec.resourceOverrides.proxyService.annotations[a b]',
    ],
    [
      'a variable',
      { resourceOverrides: { proxyDeployment: { env: [{ name: '1A', value: '' }] } } },
      'spec.resourceOverrides.proxyDeployment.env[0].name',
    ],
    ['a request above its limit', { resources: { limits: { cpu: 1 }, requests: { cpu: 2 } } }, 'spec.resources.requests[cpu]'],
  ])('names %s that the API server would refuse', (_, spec, path) => {
    expect(proxyDeployment(input({}, spec)).problems.map((problem) => problem.path)).toEqual([path])
  })
})
