import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeClient } from '@thv/kube'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { isExcluded } from '@thv/testkit/cluster/process/needs'
import { ensureNamespace, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { describeHelm } from '@thv/testkit/helm/describe-helm'
import { type Helm, openHelm } from '@thv/testkit/helm/helm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { problemLine } from '../../apps/registry/src/config/config-problem.ts'
import { readConfig } from '../../apps/registry/src/config/read-config.ts'
import { ask, put, startClusterRegistry, tokenKubeconfig } from '../../apps/registry/src/kubernetes/testing/cluster-world.ts'
import { HELM_LIMIT_MS, objectsIn, path } from './charts.ts'
import { dryRun, kubectl } from './kubectl.ts'

const CHART = path('deploy/charts/toolhive-registry')
const HA = path('test/deploy/values/registry-ha.yaml')

/** One golden for each set of rights. */
const GOLDENS: readonly { name: string; set: readonly string[]; values?: readonly string[] }[] = [
  { name: 'poll', set: [] },
  { name: 'watch', set: ['kubernetes.watch.enabled=true'] },
  { name: 'no-gateway', set: ['kubernetes.gateway.enabled=false'] },
  { name: 'grants', set: ['kubernetes.gateway.referenceGrants=true', 'kubernetes.gateway.crossNamespaceGateway=referenceGrant'] },
  { name: 'namespaces', set: ['kubernetes.namespaces={team-a,team-b}'] },
  { name: 'ha', set: [], values: [HA] },
]

interface Role {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly rules: readonly {
    readonly apiGroups: readonly string[]
    readonly resources: readonly string[]
    readonly verbs: readonly string[]
  }[]
}

describeHelm('chart toolhive-registry', () => {
  let helm: Helm
  let client: KubeClient
  const folder = mkdtempSync(join(tmpdir(), 'thv-registry-chart-'))

  beforeAll(async () => {
    helm = await openHelm()
    client = adminClient(sharedCluster())
    await installCrds(client)
    for (const namespace of ['toolhive-system', 'team-a', 'team-b']) await ensureNamespace(namespace)
  }, HELM_LIMIT_MS)
  afterAll(async () => {
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const render = (set: readonly string[] = [], values: readonly string[] = [], namespace = 'toolhive-system') =>
    helm.template({ name: 'toolhive-registry', chart: CHART, namespace, set, values })
  const rolesOf = (rendered: string) => objectsIn(rendered).filter(({ kind }) => /^(Cluster)?Role$/.test(kind)) as unknown as Role[]
  const verbsOn = (rendered: string, resource: string) =>
    rolesOf(rendered).flatMap(({ rules }) => rules.filter(({ resources }) => resources.includes(resource)).flatMap(({ verbs }) => verbs))
  const configOf = (rendered: string): string => {
    const map = objectsIn(rendered).find(({ kind }) => kind === 'ConfigMap') as unknown as { data: Record<string, string> }
    return map.data['config.yaml'] ?? ''
  }

  it.each([
    ['its defaults', []],
    ['every value', ['--values', HA]],
  ])('passes helm lint --strict with %s', async (_, more) => {
    const { code, stdout } = await helm.run(['lint', '--strict', ...more, CHART])
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('0 chart(s) failed') })
  })

  it('has the version of the project', () => {
    const { version } = JSON.parse(readFileSync(path('package.json'), 'utf8')) as { version: string }
    expect(parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))).toMatchObject({ version, appVersion: version })
    expect(parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')).image).toBe(`toolhive-ts:${version}`)
  })

  it.each(GOLDENS)('renders $name as its golden file says, and the API server takes it [001-115]', async ({ name, set, values }) => {
    const rendered = await render(set, values)
    await expect(rendered).toMatchFileSnapshot(path(`test/deploy/goldens/registry-${name}.golden.yaml`))
    // Our own API server has no PodDisruptionBudgets.
    const objects = objectsIn(rendered).filter(({ kind }) => sharedCluster().plane === 'kubernetes' || kind !== 'PodDisruptionBudget')
    const { code, stdout, stderr } = dryRun(objects.map((object) => stringify(object)).join('---\n'))
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.trim().split('\n')).toHaveLength(objects.length)
  })

  it.each(GOLDENS)('renders a configuration that the server takes: $name', async ({ set, values }) => {
    const result = readConfig(configOf(await render(set, values)), {
      env: values === undefined ? {} : { THV_REGISTRY_DATABASE_PASSWORD: 'x' },
      dataDir: '/data',
      folder: '/etc/registry',
    })
    expect(result.ok ? result.warnings : result.problems.map((problem) => problemLine('config.yaml', problem))).toEqual([])
  })

  it('gives the account of the documents the rights of the documents, for polling [001-066] [001-068] [001-069] [001-070]', async () => {
    const rendered = await render()
    for (const resource of ['mcpservers', 'mcpremoteproxies', 'virtualmcpservers', 'httproutes', 'gateways'])
      expect(verbsOn(rendered, resource)).toEqual(['get', 'list', 'watch'])
    expect(verbsOn(rendered, 'services')).toEqual(['get'])
    expect(objectsIn(rendered).find(({ kind }) => kind === 'ClusterRoleBinding')).toMatchObject({
      metadata: { name: 'toolhive-registry-reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'toolhive-registry-api', namespace: 'toolhive-system' }],
      roleRef: { kind: 'ClusterRole', name: 'toolhive-registry-reader' },
    })
  })

  it('gives no write verb but on its own Lease [001-065]', async () => {
    for (const { set, values } of GOLDENS) {
      const rules = rolesOf(await render(set, values)).flatMap((role) => role.rules)
      const writing = rules.filter(({ verbs }) => verbs.some((verb) => !['get', 'list', 'watch'].includes(verb)))
      expect(writing.map(({ resources }) => resources)).toEqual([['leases'], ['leases']])
    }
  })

  it('covers the Leases of further kubernetes sources [001-104]', async () => {
    const more = ['sources[0].name=east', 'sources[0].kubernetes.kubeconfig.path=/k', 'sources[0].kubernetes.leaderElection.enabled=true']
    const rules = rolesOf(await render([...more, 'sources[1].name=west', 'sources[1].kubernetes.leaderElection.id=own'])).flatMap(
      (role) => role.rules as readonly { resources: readonly string[]; resourceNames?: readonly string[] }[],
    )
    expect(rules.find(({ resources, resourceNames }) => resources.includes('leases') && resourceNames)?.resourceNames).toEqual([
      'toolhive-registry-kubernetes-source',
      'toolhive-registry-kubernetes-source-east',
      'own-west',
    ])
  })

  it('adds list and watch on services for watching [001-080]', async () => {
    expect(verbsOn(await render(['kubernetes.watch.enabled=true']), 'services')).toEqual(['get', 'list', 'watch'])
  })

  it('leaves out the Gateway API where routes are not exported, and grants where they are not asked for [001-072]', async () => {
    const without = await render(['kubernetes.gateway.enabled=false'])
    expect(rolesOf(without).flatMap(({ rules }) => rules.flatMap(({ apiGroups }) => apiGroups))).not.toContain('gateway.networking.k8s.io')
    expect(verbsOn(await render(), 'referencegrants')).toEqual([])
    expect(verbsOn(await render(['kubernetes.gateway.referenceGrants=true']), 'referencegrants')).toEqual(['get', 'list', 'watch'])
  })

  it('uses Roles with the same rules for single namespaces [001-071]', async () => {
    const roles = rolesOf(await render(['kubernetes.namespaces={team-a,team-b}']))
    const [cluster] = rolesOf(await render())
    expect(roles.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`)).toEqual([
      'Role team-a/toolhive-registry-reader',
      'Role team-b/toolhive-registry-reader',
      'Role toolhive-system/toolhive-registry-leader',
    ])
    expect(roles[0]?.rules).toEqual(cluster?.rules)
  })

  it('gives two releases of one namespace Leases of their own', async () => {
    const other = await helm.template({ name: 'second', chart: CHART, namespace: 'toolhive-system' })
    const leaseOf = (rendered: string) => parse(configOf(rendered)).sources[0].kubernetes.leaderElection.id
    expect(leaseOf(await render())).toBe('toolhive-registry-kubernetes-source')
    expect(leaseOf(other)).toBe('second-toolhive-registry-kubernetes-source')
  })

  it.each([
    ['replicaCount=2', 'several replicas need a shared database'],
    ['database.host=db', 'name the Secret with the password'],
    ['kubernetes.enabled=false', 'needs at least one source'],
    ['kubernetes.namespaces={A}', 'namespaces'],
    ['kubernetes.interval=soon', 'interval'],
    ['replicas=2', 'replicas'],
  ])('refuses %s', async (setting, says) => {
    const { code, stderr } = await helm.run(['template', 'x', CHART, '--set', setting])
    expect(code).not.toBe(0)
    expect(stderr).toContain(says)
  })

  const MODES = [
    ['polling', 'kubernetes.watch.enabled=false'],
    ['watching', 'kubernetes.watch.enabled=true'],
  ] as const
  for (const [mode, setting] of MODES) {
    const title = `reads the cluster with the rights and the configuration of the chart, ${mode}`
    if (isExcluded(title, ['rbac'])) continue
    it(title, async () => {
      const namespace = await testNamespace('chart')
      const rendered = await render(
        [setting, `kubernetes.namespaces={${namespace}}`, 'kubernetes.interval=1s', 'registryName=cluster'],
        [],
        namespace,
      )
      const rights = objectsIn(rendered).filter(({ kind }) => /^(ServiceAccount|Role|RoleBinding)$/.test(kind))
      const file = join(folder, `${namespace}.yaml`)
      writeFileSync(file, rights.map((object) => stringify(object)).join('---\n'))
      expect(kubectl(['apply', '-f', file])).toMatchObject({ code: 0 })
      const config = parse(configOf(rendered))
      const kubeconfig = await tokenKubeconfig(sharedCluster(), client, { namespace, account: 'toolhive-registry-api', folder })
      config.sources[0].kubernetes.kubeconfig = { path: kubeconfig }
      // At its end it waits two of these for another replica.
      config.sources[0].kubernetes.leaderElection.retryPeriod = '200ms'
      await put(client, {
        kind: 'MCPServer',
        metadata: {
          name: 'listed',
          namespace,
          annotations: {
            'toolhive.stacklok.dev/registry-export': 'true',
            'toolhive.stacklok.dev/registry-url': 'https://listed.example/',
          },
        },
        spec: { image: 'x.example/y:1' },
      })
      await using running = await startClusterRegistry(stringify(config))
      const servers = await running.untilServers((found) => Object.keys(found).length === 1)
      expect(Object.keys(servers)).toEqual([`dev.stacklok.toolhive/${namespace}.listed`])
      expect(await (await ask(`${running.registry.internalUrl}/health`)).json()).toEqual({ status: 'healthy', leader: true })
    })
  }
})
