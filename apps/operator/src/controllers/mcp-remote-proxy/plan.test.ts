import { fileURLToPath } from 'node:url'
import { MCPExternalAuthConfigReason } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import { MCPRemoteProxyCondition, MCPRemoteProxyReason } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import { MCPToolConfigReason } from '@thv/resources/kinds/mcp-tool-config/constants'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { canonicalRemoteProxySpec, respelledRemoteProxy } from '@thv/resources/testing/mcp-remote-proxy-arbitraries'
import { coins } from '@thv/resources/testing/workload-arbitraries'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import type { Lookup } from '../../references/lookup.ts'
import { fixtureLookup, planFacts } from '../../testing/fixture-namespace.ts'
import { conditionWords, readablePlan, runConfigProblems, toldBy, usableSpec } from '../../testing/plan-checks.ts'
import { planMcpRemoteProxy } from './plan.ts'
import { BLOCKED, NOTABLE, type RemoteProxyCase, WHOLE } from './testing/plan-cases.ts'

type Spec = MCPRemoteProxy['spec']

const golden = (name: string) => fileURLToPath(new URL(`./plan-${name}.golden.json`, import.meta.url))
const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`
const metadata = { name: 'demo', namespace: 'team', uid: 'uid-demo', generation: 3 }
const facts = planFacts()

function plan(spec: Spec, lookup: Lookup = fixtureLookup, change: Partial<Parameters<typeof planMcpRemoteProxy>[0]> = {}): WorkloadPlan {
  return planMcpRemoteProxy({ ...facts, lookup, proxy: { metadata, spec } as MCPRemoteProxy, ...change })
}
const planOf = ({ spec, lookup, settings = {} }: RemoteProxyCase) => plan(spec, lookup, planFacts(settings))
const FIXTURES = fixturesOf('mcpremoteproxies').map(({ manifest }) => [manifest.metadata.name, manifest.spec as Spec] as const)

describe('the plan of an MCPRemoteProxy', () => {
  it.each(Object.entries(WHOLE))('%s', async (name, spec) => {
    const whole = plan(spec)
    expect(whole.blockers).toEqual([])
    await expect(json(readablePlan(whole))).toMatchFileSnapshot(golden(name))
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

  it('has a case for every reason that MCPServers do not have', () => {
    const all = [...Object.values(WHOLE).map((spec) => plan(spec)), ...Object.values({ ...BLOCKED, ...NOTABLE }).map(planOf)]
    const seen = new Set(all.flatMap((each) => conditionWords(each).reasons))
    const shared: readonly string[] = Object.values(MCPServerReason)
    const own = Object.values(MCPRemoteProxyReason).filter((reason) => !shared.includes(reason))
    expect(own.filter((reason) => !seen.has(reason))).toEqual([
      // Found out when pods are looked at.
      MCPRemoteProxyReason.DeploymentReady,
      MCPRemoteProxyReason.DeploymentNotReady,
    ])
    expect(seen).toContain(MCPRemoteProxyReason.ExternalAuthConfigValid)
  })
})

describe('every plan of an MCPRemoteProxy', () => {
  const usable = canonicalRemoteProxySpec.map(usableSpec).map((spec) => {
    const caBundleRef = { configMapRef: { name: 'company-ca', key: 'root.pem', optional: false } }
    const addPlaintextHeaders = { 'X-A': 'a' }
    return { ...spec, ...(spec.caBundleRef && { caBundleRef }), headerForward: { ...spec.headerForward, addPlaintextHeaders } }
  })
  const random = (check: (spec: Spec) => void) => {
    fc.assert(fc.property(fc.oneof(canonicalRemoteProxySpec, usable), check), { numRuns: 100 })
  }
  const CASES = [...FIXTURES.map(([, spec]) => plan(spec)), ...Object.values({ ...BLOCKED, ...NOTABLE }).map(planOf)]

  it('is the same the second time', () => {
    for (const [, spec] of FIXTURES) expect(plan(spec)).toEqual(plan(structuredClone(spec)))
    random((spec) => {
      expect(plan(spec)).toEqual(plan(structuredClone(spec)))
    })
  })

  it('is the same for all spellings of one spec', () => {
    fc.assert(
      fc.property(fc.oneof(canonicalRemoteProxySpec, usable), coins, (canonical, coin) => {
        expect(plan(respelledRemoteProxy(canonical, coin))).toEqual(plan(canonical))
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
    const types = new Set<string>(Object.values(MCPRemoteProxyCondition))
    const reasons = new Set<string>(
      [MCPRemoteProxyReason, MCPToolConfigReason, MCPExternalAuthConfigReason].flatMap((each) => Object.values<string>(each)),
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

it('repeats no header value and no secret in conditions, status or pods', () => {
  const CANARY = 'c4n4ry-in-a-coal-mine'
  const inline = { issuer: 'https://login.example.com', clientId: 'c', clientSecret: CANARY }
  const headerForward = { addPlaintextHeaders: { 'X-Tenant': CANARY } }
  const each = plan({ remoteUrl: 'https://weather.example.com/mcp', headerForward, oidcConfig: { type: 'inline', inline } })
  expect(each.blockers).toEqual([])
  expect(JSON.stringify({ ...each, children: each.children.filter(({ kind }) => kind !== 'ConfigMap') })).not.toContain(CANARY)
})
