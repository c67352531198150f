import { normaliseMcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpGroup } from '@thv/resources/kinds/mcp-group/schema'
import { type MCPRegistry, mcpRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { type MCPRemoteProxy, mcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { type MCPServer, mcpServer } from '@thv/resources/kinds/mcp-server/schema'
import { type MCPServerEntry, mcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { type MCPToolConfig, mcpToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import {
  type VirtualMCPCompositeToolDefinition,
  virtualMcpCompositeToolDefinition,
} from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { type VirtualMCPServer, virtualMcpServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { isLeaf, isRejected, type SchemaNode, walkSchema } from '@thv/resources/schema/schema-walk'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { setLeaves, withLeafChanged } from '@thv/resources/testing/leaf-mutations'
import { beforeAll, describe, expect, it } from 'vitest'
import { registryOutcomes } from './controllers/mcp-registry/testing/registry-outcomes.ts'
import { planMcpRemoteProxy } from './controllers/mcp-remote-proxy/plan.ts'
import { planMcpServer } from './controllers/mcp-server/plan.ts'
import { entryStatus } from './controllers/mcp-server-entry/status.ts'
import { planVirtualMcpServer } from './controllers/virtual-mcp-server/plan.ts'
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
  /** Leaves of blocks that are refused as a whole, by name, or that another kind has too. */
  readonly leftOut?: RegExp
}

const facts = planFacts()
const strictFacts = planFacts({ remotes: { denyPrivate: true, allowLoopback: false, blockedAddresses: [] } })
const metadata = { name: 'x', namespace: 'team', uid: 'uid-x', generation: 1 }

/** For what may be missing. */
const withoutCa: Lookup = { ...fixtureLookup, configMap: (name) => (name.includes('-ca') ? undefined : fixtureLookup.configMap(name)) }

const OTHER_MEMBERS = 'another type needs other members beside it, so a change of the type alone can only be refused'
const WHETHER_IT_BLOCKS = 'says whether a missing bundle is refused'
const NAMED_BY_TEMPLATES = 'templates name what it declares'
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
  {
    definition: virtualMcpServer,
    outcomes: virtualOutcomes,
    // Composite tools are those of VirtualMCPCompositeToolDefinition, the authorization server is that of MCPExternalAuthConfig.
    leftOut: /^spec\.(authServerConfig\.|incomingAuth\.oidcConfig\.kubernetes\.|config\.compositeTools\[\]|.*\.primaryUpstreamProvider$)/,
    inert: { 'spec.config.name': 'may only repeat the name of the object' },
    onlyChecked: {
      'spec.config.incomingAuth.oidc.insecureAllowHttp': 'its fixture has addresses without TLS',
      'spec.config.telemetry.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.incomingAuth.oidcConfig.type': OTHER_MEMBERS,
      'spec.incomingAuth.oidcConfig.configMap.key': 'names the only document that its ConfigMap has',
      'spec.incomingAuth.oidcConfig.configMap.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.incomingAuth.oidcConfig.inline.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
      'spec.incomingAuth.authzConfig.type': OTHER_MEMBERS,
      'spec.sessionStorage.tls.caBundleRef.configMapRef.optional': WHETHER_IT_BLOCKS,
    },
  },
  {
    definition: virtualMcpCompositeToolDefinition,
    outcomes: definitionOutcomes,
    onlyChecked: {
      'spec.parameters': NAMED_BY_TEMPLATES,
      'spec.steps[].defaultResults': NAMED_BY_TEMPLATES,
      'spec.steps[].itemVar': NAMED_BY_TEMPLATES,
      'spec.output.properties.<key>.type': OTHER_MEMBERS,
      'spec.output.properties.<key>.properties': 'its fixtures have no value beside it',
    },
  },
  { definition: mcpGroup, outcomes: () => [], inert: { 'spec.description': 'for people who read the object' } },
]

describe.each(KINDS.map((kind) => [kind.definition.kind, kind] as const))('%s', (_kind, kind) => {
  const { inert = {}, onlyChecked = {}, leftOut } = kind
  const leaves = leavesOf(kind.definition.spec as SchemaNode).filter((path) => !leftOut?.test(path))
  let effects: ReturnType<typeof effectsOf>
  beforeAll(() => {
    effects = effectsOf(kind)
  })

  it('has no leaf that changes nothing', () => {
    expect(leaves.filter((path) => effects.get(path) === undefined)).toEqual(Object.keys(inert))
  })

  it('has no leaf that is only checked', () => {
    expect(leaves.filter((path) => effects.get(path) === 'refused')).toEqual(Object.keys(onlyChecked))
  })
})

/** Leaf to the best that a change of it does: another result that works too, or only one that does not. */
function effectsOf({ definition, outcomes, leftOut }: Kind): ReadonlyMap<string, 'used' | 'refused'> {
  const effects = new Map<string, 'used' | 'refused'>()
  const judge = outcomes as (spec: unknown) => readonly Outcome[]
  for (const { manifest } of fixturesOf(definition.plural)) {
    const before = judge(manifest.spec)
    for (const leaf of setLeaves(manifest.spec, definition.spec as SchemaNode, 'spec')) {
      if (effects.get(leaf.path) === 'used' || leftOut?.test(leaf.path)) continue
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

/** The members that the fixtures name. */
const MEMBERS = {
  servers: ['github', 'githubx', 'playground', 'wiki', 'wikix'].map(
    (name) =>
      ({
        metadata: { name, namespace: 'team' },
        spec: { image: 'i', transport: 'streamable-http', groupRef: { name: 'engineering' } },
        status: { url: 'http://x/mcp' },
      }) as unknown as MCPServer,
  ),
  remoteProxies: [],
  entries: [],
}

function virtualConfigMap(name: string): ReturnType<Lookup['configMap']> {
  const at = { uid: `uid-${name}`, resourceVersion: '7' }
  if (name.startsWith('oidc-settings')) {
    const settings = { issuer: 'https://idp.example.com', audience: name }
    return {
      ...at,
      data: { ...settings, 'oidc.json': JSON.stringify(settings), 'oidc.jsonx': JSON.stringify({ ...settings, audience: 'x' }) },
    }
  }
  const found = fixtureLookup.configMap(name.replace('agent-policies', 'ticket-policies'))
  const ca = found?.data['ca.crt']
  return found && ca !== undefined
    ? { ...found, data: { ...found.data, 'ca.pem': ca, 'ca.pemx': ca, 'ca.crtx': ca, 'root.pemx': ca } }
    : found
}

/** A tool config and an auth config of any name; those of another name say something else. */
const virtualLookup: Lookup = {
  ...fixtureLookup,
  configMap: virtualConfigMap,
  toolConfig: (name) => ({ metadata: { name }, spec: { toolsFilter: [name] } }) as MCPToolConfig,
  externalAuthConfig: (name) =>
    ({
      metadata: { name },
      spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name, key: 'token' } } },
    }) as MCPExternalAuthConfig,
}

function virtual(spec: VirtualMCPServer['spec'], { lookup = virtualLookup, definition = anyDefinition } = {}): Outcome {
  const server = { metadata, spec } as unknown as VirtualMCPServer
  const live = { config: undefined, deployment: undefined }
  return workload(planVirtualMcpServer({ ...facts, lookup, server, members: MEMBERS, definition, live }))
}

function anyDefinition(name: string): VirtualMCPCompositeToolDefinition {
  const spec = { name: name.replaceAll('-', '_'), description: 'A tool.', steps: [{ id: 'one', tool: 'github.search' }] }
  return { metadata: { name }, spec } as unknown as VirtualMCPCompositeToolDefinition
}

/** Without the parts that are left out, which have rules about the others. */
function virtualOutcomes(given: VirtualMCPServer['spec']): Outcome[] {
  const LEFT_OUT = new Set(['authServerConfig', 'primaryUpstreamProvider', 'compositeTools'])
  const spec = JSON.parse(JSON.stringify(given, (key, value: unknown) => (LEFT_OUT.has(key) ? undefined : value))) as typeof given
  const lookup: Lookup = { ...virtualLookup, configMap: (name) => (name.includes('-ca') ? undefined : virtualConfigMap(name)) }
  return [virtual(spec), virtual(spec, { lookup })]
}

/** A definition makes nothing: it is in the file of a virtual server that names it, or has the same tool itself. */
function definitionOutcomes(spec: VirtualMCPCompositeToolDefinition['spec']): Outcome[] {
  const definition = () => ({ metadata: { name: 'd' }, spec }) as unknown as VirtualMCPCompositeToolDefinition
  const server = { groupRef: { name: 'engineering' }, incomingAuth: { type: 'anonymous' } } as const
  const { works, made } = virtual({ ...server, compositeToolRefs: [{ name: 'd' }] }, { definition })
  const inline = virtual({ ...server, config: { compositeTools: [spec] } })
  return [{ works: works && inline.works, made: [made, inline.made] }]
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
