import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { objectsAt } from '@thv/kernel/json'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { afterAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { planFacts } from '../../testing/fixture-namespace.ts'
import { aggregateEntry } from './aggregate/aggregate-entry.ts'
import { configText, deploymentOf, FIXTURES, planOf, seedRegistry } from './testing/plan-registry.ts'

type Spec = MCPRegistry['spec']

const golden = (name: string) => fileURLToPath(new URL(`./testing/goldens/${name}`, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'registry-plan-'))
afterAll(() => rmSync(folder, { recursive: true }))

const SERVER = fileURLToPath(new URL('../../../../registry/src/main.ts', import.meta.url))

/** The verdict of `thv-registry-api validate` on the rendered configuration. */
function validated(name: string, text: string): string {
  const file = join(folder, `${name}.yaml`)
  writeFileSync(file, text)
  const { stdout, stderr, status } = spawnSync(process.execPath, [SERVER, 'validate', '--config', file], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  return status === 0 ? 'good' : `${status} ${stdout}${stderr}`
}

const git = { repository: 'https://git.example.com/r.git', branch: 'main' }
const usable = FIXTURES.filter(([, spec]) => spec.configYAML === undefined && spec.api?.enabled !== false)
const condition = (plan: ReturnType<typeof planOf>, type: string) => plan.conditions.find((each) => each.type === type)

describe('the plan of an MCPRegistry', () => {
  it.each(usable.filter(([name]) => !['from-git-commit', 'from-git-branch'].includes(name)))(
    '%s: the server accepts the rendered configuration',
    async (name, spec) => {
      const plan = planOf(spec)
      expect(plan.blockers).toEqual([])
      await expect(configText(plan)).toMatchFileSnapshot(golden(`${name}.config.yaml`))
      expect(validated(name, configText(plan))).toBe('good')
    },
    60_000,
  )

  it('[003-058] [003-066] mounts every source once, at most 16 ConfigMaps for a selector', async () => {
    const [, spec] = FIXTURES.find(([name]) => name === 'all-sources') ?? []
    const deployment = deploymentOf(planOf(spec as Spec))
    await expect(`${JSON.stringify(deployment, undefined, 1)}\n`).toMatchFileSnapshot(golden('all-sources.deployment.golden.json'))
    const volumes = objectsAt((deployment?.spec?.template?.spec ?? {}) as Record<string, unknown>, 'volumes')
    expect(volumes.filter(({ name }) => String(name).startsWith('registry-data-source-by-label'))).toHaveLength(1)
  })

  it('[003-092] [003-059] [003-011] [003-043] makes each entry of the mixed example a source of its own, selectors as plain files', () => {
    const { spec } = seedRegistry('003-mixed-sources.yaml')
    const config = parse(configText(planOf(spec, { metadata: { name: 'mixed-sources-registry' } })))
    expect(config.sources.map(({ name }: { name: string }) => name)).toEqual(['team-registries', 'core-registry', 'community-registry'])
    expect(config.sources[0]).toEqual({ name: 'team-registries', format: 'toolhive', file: { path: '/registry/team-registries' } })
    expect(config.sources[1].file).toEqual({ path: '/registry/core-registry/registry.json' })
    expect(config.registries).toEqual([
      { name: 'mixed-sources-registry', sources: ['team-registries', 'core-registry', 'community-registry'] },
    ])
    expect(JSON.stringify(config)).not.toContain('kubernetes')
    const basic = parse(configText(planOf(seedRegistry('003-basic-label-selection.yaml').spec)))
    expect(basic.sources[0].syncPolicy).toEqual({ interval: '5m' })
  })

  it('[003-065] changes neither configuration nor Deployment when a ConfigMap joins', () => {
    const spec: Spec = { registries: [{ name: 'by-label', configMapSelector: { matchLabels: { a: 'b' } } }] }
    const entry = { name: 'by-label', format: 'toolhive', configMapSelector: { key: 'k', conflictStrategy: 'prefix' } } as const
    const map = (name: string) => ({
      name,
      annotations: {},
      reading: { ok: true, problems: [], document: { format: 'toolhive', entries: [], groups: [] } } as const,
    })
    const one = planOf(spec, { aggregates: [aggregateEntry(entry, [map('a')])] })
    const two = planOf(spec, { aggregates: [aggregateEntry(entry, [map('a'), map('b')])] })
    expect(two.children).toEqual(one.children)
  })

  it('passes configYAML on unchanged', () => {
    const [, spec] = FIXTURES.find(([name]) => name === 'own-config') ?? []
    expect(configText(planOf(spec as Spec))).toBe(spec?.configYAML)
  })

  it('rolls pods only for a change of store, mounts or image', () => {
    const template = (spec: Spec, metadata = {}) => deploymentOf(planOf(spec, { metadata }))?.spec?.template
    const base: Spec = { registries: [{ name: 'a', git }] }
    const before = template(base)
    expect(template({ registries: [{ name: 'a', git: { ...git, branch: 'other' }, filter: { names: { include: ['x'] } } }] })).toEqual(
      before,
    )
    expect(template(base, { annotations: { 'toolhive.stacklok.dev/sync-trigger': '7' } })).toEqual(before)
    const secret = { name: 's', key: 'k' }
    const databaseConfig = { dbAppUserPasswordSecretRef: secret, dbMigrationUserPasswordSecretRef: secret }
    expect(template({ ...base, databaseConfig })).not.toEqual(before)
  })

  it('renders the trigger for the server, and nothing for an empty one', () => {
    const text = (value: string) =>
      configText(
        planOf({ registries: [{ name: 'a', git }] }, { metadata: { annotations: { 'toolhive.stacklok.dev/sync-trigger': value } } }),
      )
    expect(parse(text('7')).syncRequest).toBe('7')
    expect(parse(text(''))).not.toHaveProperty('syncRequest')
  })

  it.each(['x', 'v0'])('calls the registry of %s by another name, since that one is part of the paths', (name) => {
    const text = configText(planOf({ registries: [{ name: 'a', git }] }, { metadata: { name } }))
    expect(parse(text).registries[0].name).toBe('registry')
    expect(validated(`reserved-${name}`, text)).toBe('good')
  })

  it('keeps a name that YAML would take for another value', () => {
    for (const name of ['true', 'null', '1e3']) {
      const text = configText(planOf({ registries: [{ name, git }] }, { metadata: { name } }))
      expect(parse(text).registries).toEqual([{ name, sources: [name] }])
    }
  })

  it('keeps texts of users from being read as variables', () => {
    const text = configText(
      planOf({ displayName: `$${'{HOME}'}`, registries: [{ name: 'a', git, filter: { names: { include: [`$x$${'{y}'}`] } } }] }),
    )
    expect(text).toContain(`$$${'{HOME}'}`)
    expect(validated('variables', text)).toBe('good')
  })

  it('refuses fields that it would have to ignore, and names them', () => {
    const ref = { name: 's', key: 'k' }
    const provider = { name: 'p', issuerUrl: 'https://idp.example.com', audience: 'a', caCertRef: ref, authTokenRef: ref }
    const plain: Spec = { registries: [{ name: 'a', git }], authConfig: { mode: 'oauth', oauth: { providers: [provider] } } }
    expect(planOf(plain).blockers).toEqual([])
    const both = { ...provider, caCertPath: '/ca.crt', authTokenFile: '/token' }
    const spec: Spec = { ...plain, pgpassSecretRef: ref, authConfig: { mode: 'oauth', oauth: { providers: [both] } } }
    expect(planOf(spec).blockers.map(({ message }) => message.split(' ')[0])).toEqual([
      'spec.authConfig.oauth.providers[0].caCertPath',
      'spec.authConfig.oauth.providers[0].authTokenFile',
      'spec.pgpassSecretRef',
    ])
    expect(planOf({ configYAML: 'auth: {mode: anonymous}', pgpassSecretRef: ref }).blockers).toEqual([])
  })

  it.each(['ssh://git@git.example.com/r.git', 'git@git.example.com:r.git', 'git://git.example.com/r', 'file:///srv/r'])(
    'refuses %s, which no handler speaks, and names the field',
    (repository) => {
      const { blockers, children } = planOf({ registries: [{ name: 'a', git: { repository, branch: 'main' } }] })
      expect(children).toEqual([])
      expect(blockers).toMatchObject([
        { condition: 'SourceAvailable', reason: 'ValidationFailed', message: expect.stringContaining('spec.registries[0].git.repository') },
      ])
    },
  )

  it.each<[string, Spec]>([
    ['spec.source.git.repository', { source: { git: { repository: 'https://me:c4n4ry@git.example.com/r', branch: 'main' } } }],
    ['spec.source.api.endpoint', { source: { api: { endpoint: 'https://c4n4ry@registry.example.com' } } }],
    [
      'spec.registries[0].git.repository',
      { registries: [{ name: 'a', git: { repository: 'https://c4n4ry@git.example.com/r', branch: 'main' } }] },
    ],
  ])('refuses a password in %s, and repeats it nowhere', (field, spec) => {
    const plan = planOf(spec)
    expect(plan.blockers).toMatchObject([{ condition: 'SourceAvailable', reason: 'ValidationFailed' }])
    expect(plan.blockers[0]?.message).toContain(`${field} must not hold a user name or password`)
    const { spec: _, ...made } = plan
    expect(JSON.stringify(made)).not.toContain('c4n4ry')
  })

  it('[001-101] refuses several replicas without a shared store, and runs one', () => {
    const plan = planOf({ registries: [{ name: 'a', git }], replicas: 3 })
    expect(condition(plan, 'SharedStore')).toMatchObject({ status: 'False', reason: 'SharedStoreRequired' })
    expect(deploymentOf(plan)?.spec?.replicas).toBe(1)
    const yaml = planOf({ configYAML: 'database: {host: db}\n', replicas: 3 })
    expect(condition(yaml, 'SharedStore')).toMatchObject({ status: 'True' })
    expect(deploymentOf(yaml)?.spec?.replicas).toBe(3)
  })

  it('lets one of several pods go at a time, and has no budget for one', () => {
    const secret = { name: 's', key: 'k' }
    const databaseConfig = { dbAppUserPasswordSecretRef: secret, dbMigrationUserPasswordSecretRef: secret }
    const registries = [{ name: 'a', git }]
    const annotation = 'toolhive.stacklok.dev/disruption-budget'
    const several = planOf({ registries, databaseConfig, replicas: 3 })
    const selector = deploymentOf(several)?.spec?.selector
    expect(several.budget).toMatchObject({ metadata: { name: 'demo-api', namespace: 'team' }, spec: { maxUnavailable: 1, selector } })
    expect(deploymentOf(several)?.metadata.annotations).toEqual({ [annotation]: 'true' })
    for (const spec of [
      { registries, replicas: 3 },
      { registries, databaseConfig },
      { registries, databaseConfig, replicas: 1 },
    ]) {
      expect(planOf(spec).budget).toBeUndefined()
      expect(deploymentOf(planOf(spec))?.metadata).not.toHaveProperty('annotations')
    }
    expect(planOf({ registries, databaseConfig, replicas: 3, api: { enabled: false } }).budget).toBeUndefined()
  })

  it('leaves the number of pods to an autoscaler, but not without a shared store', () => {
    const live = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'demo-api' }, spec: { replicas: 4 } } as never
    const plan = planOf({ registries: [{ name: 'a', git }] }, { live })
    expect(deploymentOf(plan)?.spec?.replicas).toBe(1)
    expect(deploymentOf(planOf({ registries: [{ name: 'a', git }] }))?.spec).not.toHaveProperty('replicas')
  })

  it('never mounts a token, and keeps the restricted profile', () => {
    const pod = deploymentOf(planOf({ registries: [{ name: 'a', git }] }))?.spec?.template?.spec
    expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } })
    const patch = { spec: { containers: [{ name: 'registry-api', securityContext: { privileged: true } }] } }
    expect(planOf({ registries: [{ name: 'a', git }], podTemplateSpec: patch }).blockers).toContainEqual(
      expect.objectContaining({ condition: 'PodTemplateValid' }),
    )
  })

  it.each<[string, Spec, string]>([
    [
      'a volume name of the operator',
      { configYAML: 'a: b', volumes: [{ name: 'registry-server-config', emptyDir: {} }] },
      'registry-server-config',
    ],
    [
      'a path of the operator',
      { configYAML: 'a: b', volumes: [{ name: 'v', emptyDir: {} }], volumeMounts: [{ name: 'v', mountPath: '/config/' }] },
      '/config',
    ],
    ['a mount of no volume', { configYAML: 'a: b', volumeMounts: [{ name: 'v', mountPath: '/v' }] }, 'names no volume'],
    ['a volume that is none', { configYAML: 'a: b', volumes: [{ name: 'v', emptyDirectory: {} }] }, 'emptyDirectory'],
  ])('refuses %s', (_title, spec, says) => {
    expect(
      planOf(spec)
        .blockers.map(({ message }) => message)
        .join(),
    ).toContain(says)
  })

  it('mounts one volume at two paths', () => {
    const mounts = [
      { name: 'v', mountPath: '/a' },
      { name: 'v', mountPath: '/b' },
    ]
    const container = deploymentOf(planOf({ configYAML: 'a: b', volumes: [{ name: 'v', emptyDir: {} }], volumeMounts: mounts }))?.spec
      ?.template?.spec?.containers[0]
    expect(container?.['volumeMounts']).toEqual(expect.arrayContaining(mounts))
  })

  it('says that published servers are lost with the pod, unless a volume or a database keeps them', () => {
    const managed: Spec = { registries: [{ name: 'own', managed: {} }] }
    expect(condition(planOf(managed), 'StorageEphemeral')).toMatchObject({ status: 'True' })
    const kept = planOf({ ...managed, volumes: [{ name: 'storage-data', hostPath: { path: '/srv' } }] })
    expect(condition(kept, 'StorageEphemeral')).toBeUndefined()
    expect(deploymentOf(kept)?.spec?.strategy).toEqual({ type: 'Recreate' })
  })

  it('makes no API for api.enabled: false, and exports nothing in mode server then', () => {
    const plan = planOf({ source: { configMap: { name: 'a' } }, api: { enabled: false }, export: {} })
    expect(plan.children).toEqual([])
    expect(plan.unwanted.map(({ kind }) => kind)).toEqual(['Deployment', 'Service', 'ConfigMap', 'ServiceAccount', 'RoleBinding', 'Role'])
    expect(condition(plan, 'RegistryExport')).toMatchObject({ status: 'False', reason: 'NoServer' })
  })

  describe('export by the server', () => {
    const base: Spec = { registries: [{ name: 'a', git }], export: {} }
    const secret = { name: 's', key: 'k' }
    const databaseConfig = { dbAppUserPasswordSecretRef: secret, dbMigrationUserPasswordSecretRef: secret }
    const configOf = (spec: Spec, change: Parameters<typeof planOf>[1] = {}) => parse(configText(planOf(spec, change)))
    const allowing = (namespaces: readonly string[] | 'all') => ({
      settings: { ...planFacts().settings, registryExport: { namespaces, clusterRole: 'reader' } },
    })

    it('[001-104] puts the cluster before the other sources, watched, with an election among replicas that share a store', () => {
      const config = configOf({ ...base, databaseConfig })
      expect(config.sources[0]).toEqual({
        name: 'cluster',
        syncPolicy: { interval: '5m' },
        kubernetes: {
          namespaces: ['team'],
          crossNamespaceGateway: 'accepted',
          watch: { enabled: true, debounceInterval: '1s' },
          leaderElection: { enabled: true, id: 'toolhive-registry-kubernetes-source-demo' },
        },
      })
      expect(config.registries).toEqual([{ name: 'demo', sources: ['cluster', 'a'] }])
      expect(configOf(base).sources[0].kubernetes.leaderElection).toEqual({ enabled: false })
      expect(validated('export', configText(planOf({ ...base, databaseConfig })))).toBe('good')
      expect(configOf({ source: { configMap: { name: 'a' } }, export: {} }).registries[0].sources).toEqual(['cluster', 'storage'])
    })

    it('reads the own cluster only, and asks no server for its tools [000-010] [000-013]', () => {
      for (const namespaces of [[], ['team']]) {
        const { kubernetes } = configOf({ ...base, export: { namespaces } }).sources[0]
        // Neither a kubeconfig nor introspect.
        expect(Object.keys(kubernetes).sort()).toEqual(['crossNamespaceGateway', 'leaderElection', 'namespaces', 'watch'])
      }
    })

    it('gives way to an entry that is called cluster', () => {
      const spec: Spec = {
        registries: [
          { name: 'cluster', git },
          { name: 'cluster-1', git },
        ],
        export: {},
      }
      expect(configOf(spec).registries[0].sources).toEqual(['cluster-2', 'cluster', 'cluster-1'])
    })

    it('gives the pods a token and rights to read, and to the Lease only where one is used', () => {
      const plan = planOf({ ...base, databaseConfig })
      expect(deploymentOf(plan)?.spec?.template?.spec).toMatchObject({ automountServiceAccountToken: true })
      const rulesOf = (made: ReturnType<typeof planOf>) =>
        made.children.flatMap((child) => (child.kind === 'Role' ? child.object.rules : []))
      expect(rulesOf(plan)).toMatchObject([
        { resources: ['mcpservers', 'mcpremoteproxies', 'virtualmcpservers'], verbs: ['get', 'list', 'watch'] },
        { resources: ['services'], verbs: ['get', 'list', 'watch'] },
        { resources: ['httproutes', 'gateways', 'referencegrants'], verbs: ['get', 'list', 'watch'] },
        { resources: ['leases'], verbs: ['create'] },
        { resources: ['leases'], resourceNames: ['toolhive-registry-kubernetes-source-demo'], verbs: ['get', 'update'] },
      ])
      expect(rulesOf(planOf(base))).toHaveLength(3)
      expect(rulesOf(planOf({ ...base, export: { mode: 'none' } }))).toEqual([])
    })

    it.each<[string, string[], readonly string[] | 'all', string]>([
      ['its own namespace', ['team'], [], 'Exported'],
      ['another one', ['team', 'b'], [], 'ExportNamespaceNotAllowed'],
      ['an allowed one', ['b'], ['b'], 'Exported'],
      ['all', ['*'], ['b'], 'ExportNamespaceNotAllowed'],
      ['all, where all are allowed', ['*'], 'all', 'Exported'],
    ])('of %s, says what it exports', (_title, namespaces, allowed, reason) => {
      const plan = planOf({ ...base, export: { namespaces } }, allowing(allowed))
      expect(condition(plan, 'RegistryExport')).toMatchObject({ reason })
      const sources: { name: string; kubernetes?: { namespaces: string[] } }[] = parse(configText(plan)).sources
      const wanted = namespaces.includes('*') ? [] : namespaces
      expect(sources.find(({ name }) => name === 'cluster')?.kubernetes?.namespaces).toEqual(reason === 'Exported' ? wanted : undefined)
    })

    it('never goes beyond the namespaces that the operator watches', () => {
      const { settings } = allowing('all')
      const plan = planOf({ ...base, export: { namespaces: ['b'] } }, { settings: { ...settings, watchNamespaces: ['team'] } })
      expect(condition(plan, 'RegistryExport')).toMatchObject({ reason: 'ExportNamespaceNotAllowed' })
    })
  })

  it('names what is missing', () => {
    const plan = planOf({ registries: [{ name: 'a', configMapRef: { name: 'm' } }] }, { missing: ['ConfigMap m'] })
    expect(condition(plan, 'SourceAvailable')).toMatchObject({
      status: 'False',
      reason: 'SourceNotFound',
      message: 'not found: ConfigMap m. Create what is missing, or correct the name',
    })
    expect(plan.children).toHaveLength(4)
  })

  it('names what is wrong with an object that is there, and keeps the API as it is', () => {
    const plan = planOf({ registries: [{ name: 'a', managed: {} }] }, { invalidReferences: ['Secret s has no key k'] })
    expect(condition(plan, 'SourceAvailable')).toMatchObject({
      status: 'False',
      reason: 'InvalidData',
      message: 'Secret s has no key k. Correct the object, or name another',
    })
    expect(plan.children).toHaveLength(4)
  })
})
