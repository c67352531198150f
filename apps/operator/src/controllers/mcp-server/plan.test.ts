import { fileURLToPath } from 'node:url'
import type { Deployment } from '@thv/kube'
import { MCPExternalAuthConfigReason } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import { MCPServerCondition, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { MCPToolConfigReason } from '@thv/resources/kinds/mcp-tool-config/constants'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { canonicalServerSpec, respelledServer } from '@thv/resources/testing/mcp-server-arbitraries'
import { coins } from '@thv/resources/testing/workload-arbitraries'
import { runConfigChecksum } from '@thv/runconfig/run-config-mount'
import { RunnerReason } from '@thv/runconfig/runner-events'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import { snapshot } from '../../proxy/resolve/testing/snapshot.ts'
import type { Lookup } from '../../references/lookup.ts'
import { fixtureLookup, planFacts } from '../../testing/fixture-namespace.ts'
import { conditionWords, readablePlan, runConfigOf, runConfigProblems, toldBy, usableServerSpec } from '../../testing/plan-checks.ts'
import { planMcpServer } from './plan.ts'
import { BLOCKED, NOTABLE, type ServerCase, WHOLE } from './testing/plan-cases.ts'

type Spec = MCPServer['spec']

const golden = (name: string) => fileURLToPath(new URL(`./plan-${name}.golden.json`, import.meta.url))
const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`
const metadata = { name: 'demo', namespace: 'team', uid: 'uid-demo', generation: 3 }
const facts = planFacts()

function plan(spec: Spec, lookup: Lookup = fixtureLookup, change: Partial<Parameters<typeof planMcpServer>[0]> = {}): WorkloadPlan {
  return planMcpServer({ ...facts, lookup, server: { metadata, spec } as MCPServer, ...change })
}
const planOf = ({ spec, lookup, name = metadata.name, settings = {}, registries, labels }: ServerCase) =>
  plan(spec, lookup, {
    ...planFacts(settings),
    registries,
    server: { metadata: { ...metadata, name, ...(labels && { labels }) }, spec } as MCPServer,
  })
const STORED = { provider: 'redis', address: 'redis:6379', passwordRef: { name: 'redis', key: 'password' } } as const
const FIXTURES = fixturesOf('mcpservers').map(({ manifest }) => [manifest.metadata.name, manifest.spec as Spec] as const)

describe('the plan of an MCPServer', () => {
  it.each(Object.entries(WHOLE))('%s', async (name, spec) => {
    const whole = plan(spec)
    expect(whole.blockers).toEqual([])
    await expect(json(readablePlan(whole))).toMatchFileSnapshot(golden(name))
  })

  it.each([
    ['as many servers as proxies', { replicas: 3 }, { proxies: 3, scaling: { backend_replicas: 3, pods_per_runner: 1 }, attachable: 3 }],
    [
      'an equal share each',
      { replicas: 2, backendReplicas: 5 },
      { proxies: 2, scaling: { backend_replicas: 5, pods_per_runner: 2 }, attachable: 5 },
    ],
    [
      'no more proxies than servers',
      { replicas: 3, backendReplicas: 2 },
      { proxies: 2, scaling: { backend_replicas: 2, pods_per_runner: 1 }, attachable: 2 },
    ],
    ['one proxy with all servers', { replicas: 1, backendReplicas: 2 }, { proxies: 1, scaling: { backend_replicas: 2 }, attachable: 2 }],
  ])('proxies of a stdio server with Redis have: %s', (_, numbers, expected) => {
    const planned = plan({ image: 'example.test/server:1', ...numbers, sessionStorage: STORED })
    const { session_redis: redis, ...scaling } = { ...(runConfigOf(planned)?.['scaling_config'] as { session_redis?: object } | undefined) }
    const child = (kind: string) =>
      planned.children.find((each) => each.kind === kind)?.object as unknown as Deployment & {
        rules: { resources: string[]; resourceNames?: string[] }[]
      }
    const attach = child('Role').rules.find(({ resources }) => resources.includes('pods/attach'))
    expect({ proxies: child('Deployment').spec?.replicas, scaling, attachable: attach?.resourceNames?.length }).toEqual(expected)
    expect(redis).toBeDefined()
  })

  it('makes nothing while something blocks, and says what', async () => {
    const plans = Object.entries(BLOCKED).map(([title, each]) => [title, planOf(each)] as const)
    for (const [title, { blockers, children, alias, unwanted }] of plans) {
      expect({ title, isBlocked: blockers.length > 0, children, alias, unwanted }).toEqual({
        title,
        isBlocked: true,
        children: [],
        alias: undefined,
        unwanted: [],
      })
    }
    await expect(json(Object.fromEntries(plans.map(([title, each]) => [title, toldBy(each)])))).toMatchFileSnapshot(golden('blockers'))
  })

  it('tells what is notable although it runs', async () => {
    const plans = Object.entries(NOTABLE).map(([title, each]) => [title, planOf(each)] as const)
    expect(plans.filter(([, { blockers }]) => blockers.length > 0)).toEqual([])
    await expect(json(Object.fromEntries(plans.map(([title, each]) => [title, toldBy(each)])))).toMatchFileSnapshot(golden('conditions'))
  })

  it('has a case for every reason that a plan can give', () => {
    const all = [...Object.values(WHOLE).map((spec) => plan(spec)), ...Object.values({ ...BLOCKED, ...NOTABLE }).map(planOf)]
    const seen = new Set(all.flatMap((each) => conditionWords(each).reasons))
    expect(Object.values(MCPServerReason).filter((reason) => !seen.has(reason) && !NOT_OF_PLANS.has(reason))).toEqual([])
  })
})

const NOT_OF_PLANS: ReadonlySet<string> = new Set<string>([
  // Found out when objects are made or looked at.
  MCPServerReason.Ready,
  MCPServerReason.NotReady,
  MCPServerReason.ConfigurationValid,
  MCPServerReason.MiddlewareUnsupported,
  MCPServerReason.NameTakenByOtherWorkload,
  MCPServerReason.ServiceNameTaken,
  // Found out by following the exports of registries.
  MCPServerReason.Exported,
  MCPServerReason.ConflictingConfiguration,
  MCPServerReason.NoRegistry,
  MCPServerReason.NotOptedIn,
  // Reported by the runner.
  ...Object.values(RunnerReason),
  // Reported by pods.
  MCPServerReason.ImagePullBackOff,
  MCPServerReason.ErrImagePull,
  MCPServerReason.ErrImageNeverPull,
  MCPServerReason.InvalidImageName,
  MCPServerReason.CrashLoopBackOff,
  MCPServerReason.CreateContainerError,
  MCPServerReason.CreateContainerConfigError,
  MCPServerReason.RunContainerError,
  MCPServerReason.ContainerTerminated,
  MCPServerReason.PodFailed,
  MCPServerReason.Unschedulable,
  MCPServerReason.PodCreationFailed,
  MCPServerReason.ScaledToZero,
  // Of MCPRemoteProxy only.
  MCPServerReason.ExternalAuthConfigValid,
  // Admission and the caches leave no way to get there: whatever is named is either there or not, and of one kind.
  MCPServerReason.ToolConfigFetchError,
  MCPServerReason.ExternalAuthConfigFetchError,
  MCPServerReason.InvalidExternalAuthConfig,
  MCPServerReason.AuthServerRefFetchError,
  MCPServerReason.AuthServerRefInvalidKind,
])

describe('every plan of an MCPServer', () => {
  const usable = canonicalServerSpec.map(usableServerSpec)
  const random = (check: (spec: Spec) => void) => {
    fc.assert(fc.property(fc.oneof(canonicalServerSpec, usable), check), { numRuns: 100 })
  }
  const CASES = [...FIXTURES.map(([, spec]) => plan(spec)), ...Object.values({ ...BLOCKED, ...NOTABLE }).map(planOf)]

  it('is the same the second time [002-194]', () => {
    for (const [, spec] of FIXTURES) expect(plan(spec)).toEqual(plan(structuredClone(spec)))
    random((spec) => {
      expect(plan(spec)).toEqual(plan(structuredClone(spec)))
    })
  })

  it('is the same for all spellings of one spec', () => {
    fc.assert(
      fc.property(fc.oneof(canonicalServerSpec, usable), coins, (canonical, coin) => {
        expect(plan(respelledServer(canonical, coin))).toEqual(plan(canonical))
      }),
    )
  })

  it('is often one that works, so that these tests see something', () => {
    const plans = fc.sample(usable, 50).map((spec) => plan(spec))
    expect(plans.flatMap(({ blockers }) => blockers)).toEqual([])
  })

  it('leaves the spec as it is', () => {
    for (const [, spec] of FIXTURES) {
      const before = structuredClone(spec)
      plan(spec)
      expect(spec).toEqual(before)
    }
  })

  it('has a RunConfig that the runner reads without a warning, if any', () => {
    for (const each of CASES) expect(runConfigProblems(each)).toEqual([])
    random((spec) => {
      expect(runConfigProblems(plan(spec))).toEqual([])
    })
  })

  it('uses only words that are constants', () => {
    const types = new Set<string>(Object.values(MCPServerCondition))
    const reasons = new Set<string>(
      [MCPServerReason, MCPToolConfigReason, MCPExternalAuthConfigReason].flatMap((each) => Object.values<string>(each)),
    )
    const check = (each: WorkloadPlan) => {
      const words = conditionWords(each)
      expect(words.types.filter((type) => !types.has(type))).toEqual([])
      expect(words.reasons.filter((reason) => !reasons.has(reason))).toEqual([])
    }
    CASES.forEach(check)
    random((spec) => check(plan(spec)))
  })

  it('says each thing once', () => {
    for (const { conditions, children } of CASES) {
      expect(conditions.map(({ type }) => type)).toEqual([...new Set(conditions.map(({ type }) => type))])
      const names = children.map(({ kind, object }) => `${kind}/${object.metadata.name}`)
      expect(names).toEqual([...new Set(names)])
    }
  })
})

describe('a secret that stands in clear', () => {
  const CANARY = 'c4n4ry-in-a-coal-mine'
  const inline = { issuer: 'https://login.example.com', clientId: 'c', clientSecret: CANARY }
  const withoutRunConfig = (each: WorkloadPlan) =>
    JSON.stringify({ ...each, children: each.children.filter(({ kind }) => kind !== 'ConfigMap') })

  it('of the spec is in the RunConfig and nowhere else', () => {
    const each = plan({ image: 'i', oidcConfig: { type: 'inline', inline } })
    expect(JSON.stringify(each)).toContain(CANARY)
    expect(withoutRunConfig(each)).not.toContain(CANARY)
  })

  it('of a ConfigMap is not repeated at all', () => {
    const lookup = snapshot({ configMaps: { settings: { issuer: inline.issuer, clientId: 'c', clientSecret: CANARY } } })
    const each = plan({ image: 'i', oidcConfig: { type: 'configMap', configMap: { name: 'settings' } } }, lookup)
    expect(each.blockers).toEqual([])
    expect(JSON.stringify(each)).not.toContain(CANARY)
  })

  it.each([
    ['OIDC settings', { oidcConfig: { type: 'configMap', configMap: { name: 'c', key: 'k' } } }],
    ['policies', { authzConfig: { type: 'configMap', configMap: { name: 'c', key: 'k' } } }],
    ['a permission profile', { permissionProfile: { type: 'configmap', name: 'c', key: 'k' } }],
    ['a CA bundle', { oidcConfig: { type: 'inline', inline: { ...inline, clientSecret: 's', caBundleRef: { name: 'c', key: 'k' } } } }],
  ] as const)('is not quoted when somebody put it where %s should be', (_, change) => {
    for (const text of [CANARY, `{"${CANARY}`, `-----BEGIN CERTIFICATE-----\n${CANARY}\n-----END CERTIFICATE-----\n`]) {
      const each = plan({ image: 'i', ...change } as Spec, snapshot({ configMaps: { c: { k: text } } }))
      expect(each.blockers.length).toBeGreaterThan(0)
      expect(JSON.stringify(each)).not.toContain(CANARY)
    }
  })
})

describe('an image that registries enforce', () => {
  const validated = (status: string, observedGeneration: number) =>
    ({
      metadata,
      spec: { image: 'i' },
      status: { conditions: [{ type: 'ImageValidated', status, reason: 'ImageValidationSuccess', message: 'm', observedGeneration }] },
    }) as unknown as MCPServer
  const unread = [{ name: 'r', enforces: true, list: undefined }]
  const ofServer = (server: MCPServer) => plan(server.spec, fixtureLookup, { server, registries: unread })

  it('stays allowed for the same spec while a new operator knows no list yet', () => {
    expect(ofServer(validated('True', 3)).blockers).toEqual([])
    expect(ofServer(validated('True', 3)).conditions).toContainEqual(
      expect.objectContaining({ type: 'ImageValidated', status: 'True', message: 'm' }),
    )
    expect(ofServer(validated('True', 2)).blockers).toMatchObject([{ condition: 'ImageValidated', status: 'Unknown' }])
    expect(ofServer(validated('False', 3)).blockers).toMatchObject([{ condition: 'ImageValidated', status: 'Unknown' }])
  })

  it('leaves alone what runs, and says so', () => {
    const live = { runConfig: undefined, deployment: { metadata: { name: 'demo' } } as Deployment }
    const registries = [{ name: 'r', enforces: true, list: { hashes: new Set<string>() } }]
    const refused = plan({ image: 'i' }, fixtureLookup, { live, registries })
    expect(refused).toMatchObject({ stopsWhatRuns: false, children: [], blockers: [{ condition: 'ImageValidated' }] })
    expect(refused.blockers[0]?.message).toContain('keeps running')
  })
})

describe('the workload that runs already', () => {
  const textOf = (spec: Spec) => JSON.stringify(runConfigOf(plan(spec)))
  const deploymentOf = (runConfig: string) => {
    const annotations = { 'toolhive.stacklok.dev/runconfig-checksum': runConfigChecksum(runConfig) }
    return { metadata: { name: 'demo' }, spec: { replicas: 1, template: { metadata: { annotations } } } } as unknown as Deployment
  }
  const live = (spec: Spec) => ({ runConfig: textOf(spec), deployment: deploymentOf(textOf(spec)) })
  const open: Spec = { image: 'i', transport: 'streamable-http' }
  const closed: Spec = { image: 'i', transport: 'streamable-http', tools: ['echo'] }
  const guarded: Spec = { image: 'i', oidcConfig: { type: 'configMap', configMap: { name: 'company-oidc' } } }

  it('stops when it runs without a guard that the spec requires and that cannot be resolved', () => {
    expect(plan(guarded, snapshot(), { live: live(open) })).toMatchObject({ stopsWhatRuns: true, blockers: [{}] })
    expect(plan(guarded, snapshot()).stopsWhatRuns).toBe(false)
  })

  it('stops when an operator ended after it had written the RunConfig with the guard, and the guard cannot be resolved any more', () => {
    const halfway = { ...live(guarded), deployment: deploymentOf(textOf(open)) }
    expect(plan(guarded, snapshot(), { live: halfway })).toMatchObject({ stopsWhatRuns: true, blockers: [{}] })
  })

  it.each([
    ['that closes a door rolls without overlap', open, open, 'Recreate'],
    ['that closed a door and was only half made rolls without overlap', closed, open, 'Recreate'],
    ['that was made before closes nothing', closed, closed, 'RollingUpdate'],
  ])('a change %s', (_, written, running, type) => {
    const state = { runConfig: textOf(written), deployment: deploymentOf(textOf(running)) }
    const change = { ...closed, env: [{ name: 'A', value: 'b' }] }
    expect(strategyOf(plan(change, fixtureLookup, { live: state }))).toMatchObject({ type })
  })

  it('stays when it has the guard already', () => {
    expect(plan(guarded, snapshot(), { live: live(guarded) })).toMatchObject({ stopsWhatRuns: false, blockers: [{}] })
  })

  it('stays when the missing part guards nothing', () => {
    const broken: Spec = { image: 'i', secrets: [{ name: 'missing', key: 'k' }] }
    expect(plan(broken, snapshot(), { live: live(open) })).toMatchObject({ stopsWhatRuns: false, blockers: [{ reason: 'SecretNotFound' }] })
  })

  it.each<[string, Partial<Spec>]>([
    ['nothing', {}],
    ['replicas', { replicas: 3 }],
    ['groupRef', { groupRef: 'engineering' }],
    ['serviceType', { serviceType: 'NodePort' }],
    ['sessionAffinity', { sessionAffinity: 'None' }],
  ])('is not replaced when %s changes, although the generation does', (_, change) => {
    const before: Spec = { image: 'i', transport: 'streamable-http' }
    const later = { metadata: { ...metadata, generation: 9 }, spec: { ...before, ...change } } as MCPServer
    const after = plan(before, fixtureLookup, { live: live(before), server: later })
    expect(podsOf(after)).toEqual(podsOf(plan(before)))
  })

  it.each<[string, Partial<Spec>]>([
    ['image', { image: 'other' }],
    ['mcpPort', { mcpPort: 9000 }],
    ['env', { env: [{ name: 'A', value: 'b' }] }],
    ['tools', { tools: ['a'] }],
  ])('is replaced when %s changes', (_, change) => {
    const before: Spec = { image: 'i', transport: 'streamable-http' }
    const after = plan({ ...before, ...change }, fixtureLookup, { live: live(before) })
    expect(podsOf(after)).not.toEqual(podsOf(plan(before)))
  })

  function strategyOf({ children }: WorkloadPlan): unknown {
    return children.flatMap((child) => (child.kind === 'Deployment' ? [child.object.spec?.['strategy']] : []))[0]
  }

  /** Fields whose change replaces pods. */
  function podsOf({ children }: WorkloadPlan): unknown {
    return children.flatMap((child) => (child.kind === 'Deployment' ? [child.object.spec?.template] : []))
  }
})
