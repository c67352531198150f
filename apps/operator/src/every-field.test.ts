import { normaliseMcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpGroup } from '@thv/resources/kinds/mcp-group/schema'
import { type MCPRegistry, mcpRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { type MCPRemoteProxy, mcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { type MCPServer, mcpServer } from '@thv/resources/kinds/mcp-server/schema'
import { type MCPServerEntry, mcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { type MCPToolConfig, mcpToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import { isLeaf, isRejected, type SchemaNode, walkSchema } from '@thv/resources/schema/schema-walk'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { setLeaves, withLeafChanged } from '@thv/resources/testing/leaf-mutations'
import { beforeAll, describe, expect, it } from 'vitest'
import { registryOutcomes } from './controllers/mcp-registry/testing/registry-outcomes.ts'
import { planMcpRemoteProxy } from './controllers/mcp-remote-proxy/plan.ts'
import { planMcpServer } from './controllers/mcp-server/plan.ts'
import { entryStatus } from './controllers/mcp-server-entry/status.ts'
import type { WorkloadPlan } from './deployment/deployment-plan.ts'
import { authServerContribution } from './proxy/resolve/auth-server.ts'
import { snapshot } from './proxy/resolve/testing/snapshot.ts'
import { authConfigConditions } from './references/judge-auth-config.ts'
import { judgeToolConfig } from './references/judge-tool-config.ts'
import type { Lookup } from './references/lookup.ts'
import { fixtureLookup, planFacts } from './testing/fixture-namespace.ts'

/*
 * No field is accepted and ignored: for each leaf of a spec there is a fixture in which changing only that leaf changes what the operator
 * makes of it. Hashes of a whole spec do not count, as they change with everything.
 */

/** The operator's result for an object; `works` when nothing blocks it. */
interface Outcome {
  readonly works: boolean
  readonly made: unknown
}

interface Kind {
  readonly definition: { readonly kind: string; readonly plural: string; readonly spec: unknown }
  readonly outcomes: (spec: never) => readonly Outcome[]
  /** Leaf to the reason why nothing changes with it. */
  readonly inert?: Readonly<Record<string, string>>
  /** Leaf to the reason why another valid value of it can only be refused here. */
  readonly onlyChecked?: Readonly<Record<string, string>>
}

const facts = planFacts()
const strictFacts = planFacts({ remotes: { denyPrivate: true, allowLoopback: false, blockedAddresses: [] } })
const metadata = { name: 'x', namespace: 'team', uid: 'uid-x', generation: 1 }

/** For what may be missing. */
const withoutCa: Lookup = { ...fixtureLookup, configMap: (name) => (name.includes('-ca') ? undefined : fixtureLookup.configMap(name)) }

const OTHER_MEMBERS = 'another type needs other members beside it, so a change of the type alone can only be refused'
const WHETHER_IT_BLOCKS = 'says whether a missing bundle is refused'
const ONE_VALUE = 'has one value only; it is there for later kinds'

const KINDS: readonly Kind[] = [
  {
    definition: mcpServer,
    outcomes: (spec: MCPServer['spec']) => [workload(server(spec)), workload(server(spec, withoutCa))],
    inert: { 'spec.authServerRef.kind': ONE_VALUE },
    onlyChecked: {
      'spec.permissionProfile.type': OTHER_MEMBERS,
      'spec.oidcConfig.configMap.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.oidcConfig.inline.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.authzConfig.type': OTHER_MEMBERS,
      'spec.authzConfig.candidate.type': OTHER_MEMBERS,
      'spec.telemetry.openTelemetry.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.sessionStorage.tls.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
    },
  },
  {
    definition: mcpRemoteProxy,
    outcomes: (spec: MCPRemoteProxy['spec']) => [
      workload(proxy(spec)),
      workload(proxy(spec, { strict: true })),
      workload(proxy(spec, { lookup: withoutCa })),
    ],
    inert: { 'spec.authServerRef.kind': ONE_VALUE },
    onlyChecked: {
      'spec.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.oidcConfig.configMap.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.oidcConfig.inline.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.authzConfig.type': OTHER_MEMBERS,
      'spec.authzConfig.candidate.type': OTHER_MEMBERS,
      'spec.telemetry.openTelemetry.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.sessionStorage.tls.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
    },
  },
  { definition: mcpToolConfig, outcomes: toolConfigOutcomes },
  {
    definition: mcpExternalAuthConfig,
    outcomes: authConfigOutcomes,
    onlyChecked: {
      'spec.type': OTHER_MEMBERS,
      'spec.embeddedAuthServer.primaryUpstreamProvider': 'must name a provider; it decides whose claims policies of a VirtualMCPServer see',
      'spec.upstreamInject.providerName': 'must be the name of a provider of the embedded server beside it',
      'spec.oidc.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
    },
  },
  {
    definition: mcpServerEntry,
    outcomes: entryOutcomes,
    inert: {
      'spec.transport': 'for the VirtualMCPServer that calls the server; an entry itself calls no server',
      'spec.headerForward.addPlaintextHeaders.<key>': 'sent by the VirtualMCPServer that calls the server',
    },
  },
  {
    definition: mcpRegistry,
    outcomes: (spec: MCPRegistry['spec']) => registryOutcomes(spec),
    inert: {
      'spec.source.type': 'must name the source that is set, which tells already',
    },
    onlyChecked: { 'spec.volumes[]': 'the other value of the test is no volume' },
  },
  { definition: mcpGroup, outcomes: () => [], inert: { 'spec.description': 'for people who read the object' } },
]

describe.each(KINDS.map((kind) => [kind.definition.kind, kind] as const))('%s', (_kind, kind) => {
  const { inert = {}, onlyChecked = {} } = kind
  const spec = kind.definition.spec as SchemaNode
  let effects: ReturnType<typeof effectsOf>
  beforeAll(() => {
    effects = effectsOf(kind)
  }, 60_000)

  it('has no leaf that changes nothing', () => {
    expect(leavesOf(spec).filter((path) => effects.get(path) === undefined)).toEqual(Object.keys(inert))
  })

  it('has no leaf that is only checked', () => {
    expect(leavesOf(spec).filter((path) => effects.get(path) === 'refused')).toEqual(Object.keys(onlyChecked))
  })
})

/** Leaf to the best that a change of it does: another result that works too, or only one that does not. */
function effectsOf({ definition, outcomes }: Kind): ReadonlyMap<string, 'used' | 'refused'> {
  const effects = new Map<string, 'used' | 'refused'>()
  const judge = outcomes as (spec: unknown) => readonly Outcome[]
  for (const { manifest } of fixturesOf(definition.plural)) {
    const before = judge(manifest.spec)
    for (const leaf of setLeaves(manifest.spec, definition.spec as SchemaNode, 'spec')) {
      if (effects.get(leaf.path) === 'used') continue
      for (const changed of withLeafChanged(manifest.spec, leaf)) {
        const effect = effectOf(before, judge(changed))
        if (effect !== undefined) effects.set(leaf.path, effect)
        if (effect === 'used') break
      }
    }
  }
  return effects
}

function effectOf(before: readonly Outcome[], after: readonly Outcome[]): 'used' | 'refused' | undefined {
  const different = before.flatMap((outcome, index) => {
    const other = after[index]
    return other !== undefined && JSON.stringify(outcome) !== JSON.stringify(other) ? [outcome.works && other.works] : []
  })
  if (different.length === 0) return undefined
  return different.includes(true) ? 'used' : 'refused'
}

function leavesOf(spec: SchemaNode): string[] {
  return [...walkSchema(spec, 'spec')]
    .filter(({ node, parents }) => isLeaf(node) && !parents.some(isLeaf) && ![node, ...parents].some(isRejected))
    .map(({ path }) => path)
}

function server(spec: MCPServer['spec'], lookup: Lookup = fixtureLookup): WorkloadPlan {
  return planMcpServer({ ...facts, lookup, server: { metadata, spec } as MCPServer })
}

function proxy(spec: MCPRemoteProxy['spec'], { lookup = fixtureLookup, strict = false }: { lookup?: Lookup; strict?: boolean } = {}) {
  return planMcpRemoteProxy({ ...(strict ? strictFacts : facts), lookup, proxy: { metadata, spec } as MCPRemoteProxy })
}

function workload(plan: WorkloadPlan): Outcome {
  const status = Object.entries(plan.status).filter(([member]) => !member.endsWith('Hash'))
  return { works: plan.blockers.length === 0, made: { ...plan, status } }
}

/** Of the object itself, and of workloads that use it. */
function toolConfigOutcomes(spec: NonNullable<MCPToolConfig['spec']>): Outcome[] {
  const lookup: Lookup = { ...fixtureLookup, toolConfig: (name) => ({ metadata: { name }, spec }) as MCPToolConfig }
  const { conditions } = judgeToolConfig({ spec })
  const uses = { transport: 'streamable-http', toolConfigRef: { name: 't' } } as const
  return [
    { works: conditions.every(({ status }) => status === 'True'), made: conditions },
    workload(server({ image: 'i', ...uses }, lookup)),
    workload(proxy({ remoteUrl: 'https://r.example.com', ...uses }, { lookup })),
  ]
}

const RESOURCE = 'https://mcp.example.com/mcp'

function authConfigOutcomes(spec: MCPExternalAuthConfig['spec']): Outcome[] {
  const { conditions } = authConfigConditions({ spec }, fixtureLookup)
  const { embeddedAuthServer: login } = normaliseMcpExternalAuthConfig({ spec }).spec
  const lookup: Lookup = {
    ...fixtureLookup,
    externalAuthConfig: (name) => (name === 'this' ? ({ metadata: { name }, spec } as MCPExternalAuthConfig) : loginWith(name)),
  }
  // Clients must show the tokens of the very server that stands beside the proxy.
  const issuer = login?.issuer ?? 'https://mcp.example.com'
  const scopes = ['openid', ...(login?.baselineClientScopes ?? [])]
  const inline = { issuer, audience: RESOURCE, scopes, insecureAllowHTTP: true }
  const oidcConfig = { type: 'inline', resourceUrl: RESOURCE, inline } as const
  const alone = { oidcConfig, externalAuthConfigRef: { name: 'this' } }
  const named = { oidcConfig: { type: 'external', resourceUrl: RESOURCE, external: { name: 'this' } } } as const
  const beside = ['corporate', 'github', 'corporatex', 'githubx'].map((name) => ({ ...alone, authServerRef: { name } }))
  return [
    { works: conditions.find(({ type }) => type === 'Valid')?.status === 'True', made: conditions },
    workload(server({ image: 'i', transport: 'streamable-http', ...named }, { ...lookup, configMap: withoutCa.configMap })),
    ...[alone, ...beside, { oidcConfig, authServerRef: { name: 'this' } }, named].flatMap((uses) => [
      workload(server({ image: 'i', transport: 'streamable-http', ...uses }, lookup)),
      workload(proxy({ remoteUrl: 'https://r.example.com', ...uses }, { lookup })),
    ]),
    // A VirtualMCPServer gets the same settings.
    {
      works: true,
      made: login && authServerContribution(login, { ...metadata, scopes, resourceUrl: RESOURCE, managedSecret: 'keys' }),
    },
  ]
}

/** An embedded server with one provider of that name. */
function loginWith(provider: string): MCPExternalAuthConfig {
  const oidcConfig = { issuerUrl: 'https://idp.example.com', clientId: 'c' }
  const embeddedAuthServer = {
    issuer: 'https://mcp.example.com',
    upstreamProviders: [{ name: provider, type: 'oidc' as const, oidcConfig }],
  }
  return { metadata: { name: provider }, spec: { type: 'embeddedAuthServer', embeddedAuthServer } } as MCPExternalAuthConfig
}

/** An entry makes nothing: all there is to see is its status, where everything is there and where nothing is. */
function entryOutcomes(spec: MCPServerEntry['spec']): Outcome[] {
  const entry = { metadata, spec } as MCPServerEntry
  const contexts = [
    { ...facts, lookup: fixtureLookup },
    { ...strictFacts, lookup: fixtureLookup },
    { ...facts, lookup: snapshot() },
  ]
  return contexts.map((context) => ({ works: true, made: entryStatus(entry, context) }))
}
