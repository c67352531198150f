import type { PolicyChecker } from '@thv/authz/policy-syntax'
import type { ConditionUpdate } from '@thv/kube'
import type { VirtualMCPCompositeToolDefinition } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import { type CanonicalVirtualMCPServerSpec, normaliseVirtualMcpServer } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { compact } from '@thv/resources/schema/normalize'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { type VmcpDocument, writeVmcpConfig } from '@thv/vmcpconfig/write-vmcp-config'
import type { ManagedKeys } from '../../auth-server/ensure-managed-keys.ts'
import { capReplicas } from '../../auth-server/replica-cap.ts'
import type { Blocker, Contribution } from '../../deployment/contribution.ts'
import { type PlannedChild, STOPPED_ANNOTATION, type WorkloadPlan } from '../../deployment/deployment-plan.ts'
import { secretsHash } from '../../deployment/template/annotations.ts'
import { shadowedCondition } from '../../deployment/template/container-variables.ts'
import { TEMPLATE_PATH, type TemplateProblem } from '../../deployment/template/template-problem.ts'
import type { OperatorSettings } from '../../operator-settings.ts'
import { virtualServerNames } from '../../proxy/names.ts'
import type { Lookup } from '../../references/lookup.ts'
import { templateSecrets } from '../../references/template-secrets.ts'
import { aggregationOf, type NamedBackend, unknownNames } from './config/aggregation.ts'
import { authServerOf } from './config/auth-server.ts'
import { type BackendList, backendsOf } from './config/backends.ts'
import { referencedTools } from './config/composite-tools.ts'
import { groupCondition } from './config/group.ts'
import { type IncomingAuth, incomingAuthOf, withPrimaryProvider } from './config/incoming-auth.ts'
import { auditOf, operationalOf, optionalBlocks } from './config/operational.ts'
import { type OutgoingAuth, outgoingAuthOf } from './config/outgoing-auth.ts'
import { type LiveVirtualServer, lacksProtection, restartChecksum } from './config/protections.ts'
import { rateLimitBlockers } from './config/rate-limits.ts'
import { sessionStorageOf } from './config/session-storage.ts'
import { specPath } from './config/spec-path.ts'
import { telemetryOf } from './config/telemetry.ts'
import { accessOf } from './objects/access.ts'
import { accountOf, aliasOf, configMapOf, serviceHostsOf, serviceOf, urlOf } from './objects/children.ts'
import { virtualDeployment } from './objects/deployment.ts'
import type { GroupMembers } from './objects/group-members.ts'

export interface VirtualPlanInput {
  readonly server: VirtualMCPServer
  readonly members: GroupMembers
  readonly definition: (name: string) => VirtualMCPCompositeToolDefinition | undefined
  readonly lookup: Lookup
  readonly settings: OperatorSettings
  readonly live: LiveVirtualServer
  readonly checkPolicies: PolicyChecker
  /** A problem of the seal Secret. */
  readonly seal?: Blocker | undefined
  /** Keys that the operator makes for the authorization server; undefined: the spec names all of them. */
  readonly keys?: ManagedKeys | undefined
  readonly now: number
}

/** Everything that one VirtualMCPServer needs, and what to tell of it. Pure. */
export function planVirtualMcpServer(input: VirtualPlanInput): WorkloadPlan {
  const { server, lookup, settings, live, now } = input
  const { name, namespace = '' } = server.metadata
  const place = { name, namespace }
  const { spec, problems } = normaliseVirtualMcpServer(server)
  const group = groupCondition(spec.groupRef, lookup)
  const deps = { ...input, ...place, clusterDomain: settings.clusterDomain }
  const [serviceHost = ''] = serviceHostsOf(place, settings.clusterDomain)
  const incoming = spec.incomingAuth && incomingAuthOf(spec.incomingAuth, { ...deps, serviceHost, checkPolicies: input.checkPolicies, now })
  const given = Object.entries(spec.outgoingAuth.backends).filter(([, { type }]) => type === 'externalAuthConfigRef')
  const listed = backendsOf(input.members, {
    ...deps,
    group: spec.groupRef?.name ?? '',
    incoming: incoming?.document ?? {},
    overridden: new Set(given.map(([backend]) => backend)),
  })
  const url = urlOf(place, settings.clusterDomain)
  const login = authServerOf(spec.authServerConfig, { ...deps, url, oidc: incoming?.document.oidc, keys: input.keys })
  const outgoing = outgoingAuthOf(spec.outgoingAuth, listed.backends, {
    externalAuthConfig: (config) => lookup.externalAuthConfig(config),
    secret: (secret) => lookup.secret(secret),
    authServer: login.document,
  })
  const aggregated = aggregationOf(spec.config.aggregation, lookup)
  const composite = referencedTools(spec.compositeToolRefs, input.definition)
  const replicas = spec.replicas ?? live.deployment?.spec?.replicas ?? 1
  const storage = sessionStorageOf(spec, { ...deps, defaultRedis: settings.defaultRedis, replicas })
  const telemetry = telemetryOf(spec, deps)
  const isInline = spec.outgoingAuth.source === 'inline'
  const backends = listed.backends.filter(({ config }) => !outgoing.leftOut.has(config.name))
  const used = isInline ? backends : []

  const contributions: Contribution[] = [
    ...(incoming?.contributions ?? []),
    ...login.contributions,
    storage.contribution,
    telemetry.contribution,
    ...outgoing.contributions,
    ...used.map(({ contribution }) => contribution),
  ]
  const document =
    incoming &&
    documentOf(input, {
      spec,
      incoming: withPrimaryProvider(incoming, spec.authServerConfig, login.document !== undefined),
      authServer: login.document,
      outgoing,
      aggregation: aggregated.document,
      composite: composite.tools,
      storage,
      telemetry,
      backends: used,
    })
  const written =
    document && writeVmcpConfig(isInline ? withoutUnknown(document, new Set(used.map(({ config }) => config.name))) : document)
  const blockers: Blocker[] = [
    ...problems.map(({ message }) => invalid(message)),
    ...group.blockers,
    ...(incoming?.blockers ?? []),
    ...login.blockers,
    ...outgoing.blockers,
    ...aggregated.blockers,
    ...storage.blockers,
    ...telemetry.blockers,
    ...rateLimitBlockers(spec, { replicas, hasSharedStore: storage.document !== undefined || storage.blockers.length > 0 }),
    ...(input.seal === undefined ? [] : [input.seal]),
    ...(isInline && used.length === 0 ? [noBackends(listed, outgoing)] : []),
    ...(written === undefined || written.ok
      ? []
      : written.problems.map(({ path, message, isSentence }) => invalid(isSentence ? message : `${specPath(path)} ${message}`))),
  ]
  const base: WorkloadPlan = {
    guards: [],
    children: [],
    alias: undefined,
    unwanted: [],
    conditions: [
      ...group.conditions,
      ...(incoming && incoming.blockers.length === 0 ? [authConfigured(spec)] : []),
      ...login.conditions,
      ...outgoing.conditions,
      ...composite.conditions,
      ...(isInline ? discovered(backends.length, listed) : []),
      ...unknownNames(namedBackends(spec), memberNames(input.members)),
      ...contributions.flatMap(({ conditions = [] }) => conditions),
    ],
    status: {
      ...(spec.groupRef && { group: spec.groupRef.name }),
      ...Object.assign({}, ...contributions.map(({ status = {} }) => status)),
    },
    blockers,
    unsupported: [],
    stopsWhatRuns: false,
    url,
  }
  const runsOpen = live.deployment !== undefined && lacksProtection(live, spec)
  const blockedPlan = (all: readonly Blocker[]): WorkloadPlan => ({ ...base, blockers: all, stopsWhatRuns: runsOpen })
  if (blockers.length > 0 || written?.ok !== true || incoming === undefined) return blockedPlan(blockers)

  const unsupported = [...incoming.unsupported, ...ofFile(written.unsupported, written.config)]
  const capped = capReplicas(written.config.authServer, { replicas: spec.replicas, scale: live.deployment?.spec?.replicas })
  const made = deploymentOf(input, {
    spec,
    replicas: capped.replicas,
    contributions,
    config: written.config,
    mustStop: unsupported.length > 0,
    runsOpen,
  })
  if (made.problems.length > 0) return blockedPlan(templateBlockers(made.problems))
  const alias = aliasOf(place, spec)
  const children: PlannedChild[] = [
    ...(spec.serviceAccount === undefined ? [{ kind: 'ServiceAccount', object: accountOf(place, { spec, settings }) } as const] : []),
    ...accessOf(place, { spec, members: input.members, lookup }),
    { kind: 'ConfigMap', object: configMapOf(place, written.text) },
    { kind: 'Service', object: serviceOf(place, spec) },
    { kind: 'Deployment', object: made.deployment },
  ]
  return {
    ...base,
    children,
    alias: alias.service,
    unwanted: spec.serviceAccount === undefined ? [] : [{ kind: 'ServiceAccount', name: virtualServerNames(name).account }],
    conditions: [
      ...base.conditions,
      ...capped.conditions,
      ...templateConditions(made.conditions),
      ...alias.conditions,
      ...shadowedCondition(made.shadowedVariables),
    ],
    unsupported,
  }
}

interface Parts {
  readonly spec: CanonicalVirtualMCPServerSpec
  readonly incoming: IncomingAuth
  readonly authServer: VmcpConfig['authServer']
  readonly outgoing: OutgoingAuth
  readonly aggregation: ReturnType<typeof aggregationOf>['document']
  readonly composite: ReturnType<typeof referencedTools>['tools']
  readonly storage: ReturnType<typeof sessionStorageOf>
  readonly telemetry: ReturnType<typeof telemetryOf>
  readonly backends: BackendList['backends']
}

function documentOf({ server, settings }: VirtualPlanInput, parts: Parts): VmcpDocument {
  const { spec, incoming, authServer, outgoing, aggregation, composite, storage, telemetry, backends } = parts
  const { name, namespace = '' } = server.metadata
  const { config } = spec
  return compact({
    name,
    groupRef: spec.groupRef?.name ?? '',
    backends: backends.length === 0 ? undefined : backends.map((backend) => backend.config),
    incomingAuth: incoming.document,
    authServer,
    outgoingAuth: outgoing.document,
    aggregation,
    compositeTools: [...(server.spec.config?.compositeTools ?? []), ...composite],
    operational: operationalOf(config.operational),
    metadata: Object.keys(config.metadata).length > 0 ? config.metadata : undefined,
    audit: auditOf(config.audit),
    telemetry: telemetry.document,
    ...optionalBlocks(config, server.spec.config ?? {}),
    sessionStorage: storage.document,
    passthroughHeaders: spec.passthroughHeaders.length > 0 ? spec.passthroughHeaders : undefined,
    remotePolicy: {
      denyPrivate: settings.remotes.denyPrivate,
      // Where Services have loopback addresses, backends have them.
      allowLoopback: settings.remotes.allowLoopback || settings.serviceUrls === 'address',
    },
    trustProxyHeaders: spec.trustProxyHeaders || undefined,
    trustedProxies: spec.trustedProxies.length > 0 ? spec.trustedProxies : undefined,
    allowedHosts: spec.allowedHosts.length > 0 ? spec.allowedHosts : undefined,
    serviceHosts: serviceHostsOf({ name, namespace }, settings.clusterDomain),
  }) as VmcpDocument
}

/** Settings of members that are not up yet have no effect until they are; the program would take their names for mistakes. */
function withoutUnknown(document: VmcpDocument, known: ReadonlySet<string>): VmcpDocument {
  const { aggregation, operational } = document
  const { tools = [], conflictResolutionConfig: conflicts } = aggregation ?? {}
  const order = conflicts?.priorityOrder?.filter((name) => known.has(name))
  const winners = conflicts?.winners && Object.entries(conflicts.winners).filter(([, name]) => known.has(name))
  const perWorkload = Object.entries(operational?.timeouts?.perWorkload ?? {}).filter(([name]) => known.has(name))
  return {
    ...document,
    aggregation: {
      ...aggregation,
      tools: tools.filter(({ workload }) => known.has(workload)),
      ...(conflicts && {
        conflictResolutionConfig: {
          ...conflicts,
          ...(order && { priorityOrder: order }),
          ...(winners && { winners: Object.fromEntries(winners) }),
        },
      }),
    },
    operational: {
      ...operational,
      ...(operational?.timeouts && { timeouts: { ...operational.timeouts, perWorkload: Object.fromEntries(perWorkload) } }),
    },
  }
}

function ofFile(parts: readonly { readonly path: string; readonly message: string }[], config: VmcpConfig): WorkloadPlan['unsupported'] {
  return parts.map(({ path, message }) => {
    const index = /^backends\[(\d+)\]/.exec(path)?.[1]
    const backend = index === undefined ? undefined : config.backends[Number(index)]
    return {
      field: backend === undefined ? specPath(path) : `${path.replace(/^backends\[\d+\]\./, '')} of backend ${backend.name}`,
      middleware: message,
    }
  })
}

interface DeploymentParts {
  readonly spec: CanonicalVirtualMCPServerSpec
  readonly replicas: number | undefined
  readonly contributions: readonly Contribution[]
  readonly config: VmcpConfig
  readonly mustStop: boolean
  /** Whether what runs lacks a protection that the spec asks for. */
  readonly runsOpen: boolean
}

function deploymentOf({ server, settings, lookup, live }: VirtualPlanInput, parts: DeploymentParts) {
  const { spec, replicas, contributions, config, mustStop, runsOpen } = parts
  const { name, namespace = '' } = server.metadata
  const wasStopped = live.deployment?.metadata.annotations?.[STOPPED_ANNOTATION] === 'true'
  const secrets = [...contributions.flatMap(({ secrets: used = [] }) => used), ...templateSecrets(spec.podTemplateSpec)]
  const made = virtualDeployment({
    name,
    namespace,
    spec,
    settings,
    configChecksum: restartChecksum(config),
    contributions,
    replicas: mustStop ? 0 : (replicas ?? (wasStopped || wasRefused(live) ? 1 : undefined)),
    secretsHash: secretsHash(secrets, lookup),
    recreate: runsOpen || isRecreating(live),
  })
  const { metadata } = made.deployment
  const annotations = {
    ...metadata.annotations,
    ...(mustStop || wasStopped || wasRefused(live) ? { [STOPPED_ANNOTATION]: String(mustStop) } : {}),
  }
  return {
    ...made,
    deployment: { ...made.deployment, metadata: { ...metadata, ...(Object.keys(annotations).length > 0 && { annotations }) } },
  }
}

/** Stopped before, whatever the annotation says by now: the number does not come back when no apply names it any more. */
function wasRefused({ deployment }: LiveVirtualServer): boolean {
  return deployment?.metadata.annotations?.[STOPPED_ANNOTATION] !== undefined && deployment.spec?.replicas === 0
}

/** Once begun, that way is kept to until the rollout is over. */
function isRecreating({ deployment }: LiveVirtualServer): boolean {
  if ((deployment?.spec?.['strategy'] as { type?: string } | undefined)?.type !== 'Recreate') return false
  const wanted = deployment?.spec?.replicas ?? 1
  const { metadata, status } = deployment ?? {}
  return !(status?.observedGeneration === metadata?.generation && status?.updatedReplicas === wanted && status.replicas === wanted)
}

function templateBlockers(problems: readonly TemplateProblem[]): Blocker[] {
  return problems.map(({ path, message }) =>
    path.startsWith(TEMPLATE_PATH)
      ? { condition: Condition.PodTemplateSpecValid, reason: Reason.InvalidPodTemplateSpec, message: `${path} ${message}` }
      : invalid(`${path} ${message}`),
  )
}

function templateConditions(conditions: readonly ConditionUpdate[]): ConditionUpdate[] {
  return conditions.map((condition) =>
    condition.type === 'PodTemplateValid'
      ? { ...condition, type: Condition.PodTemplateSpecValid, reason: Reason.PodTemplateSpecValid }
      : condition,
  )
}

function authConfigured({ incomingAuth }: CanonicalVirtualMCPServerSpec): ConditionUpdate {
  const message =
    incomingAuth?.type === 'oidc'
      ? 'clients must authenticate'
      : 'Anyone who can reach the server can use it: incomingAuth.type is anonymous.'
  return { type: Condition.AuthConfigured, status: 'True', reason: Reason.AuthValid, message }
}

function discovered(count: number, { leftOut }: BackendList): ConditionUpdate[] {
  const type = Condition.BackendsDiscovered
  const left = leftOut.length === 0 ? '' : ` Not used yet: ${leftOut.map(({ why }) => why).join('; ')}.`
  if (count === 0)
    return [
      { type, status: 'False', reason: Reason.BackendDiscoveryFailed, message: `The group has no backend that can be called.${left}` },
    ]
  const found = count === 1 ? '1 backend.' : `${count} backends.`
  return [{ type, status: 'True', reason: Reason.BackendsDiscoveredSuccessfully, message: `${found}${left}` }]
}

/** Heals by itself when a member comes up. */
function noBackends({ leftOut }: BackendList, { conditions }: OutgoingAuth): Blocker {
  const failed = conditions.filter(({ status }) => status === 'False').map(({ message }) => message)
  const why = [...leftOut.map((each) => each.why), ...failed]
  return {
    condition: Condition.BackendsDiscovered,
    reason: Reason.BackendDiscoveryFailed,
    message: `The group has no backend that can be called${why.length === 0 ? ': add members to it' : `. ${why.join('; ')}`}`,
  }
}

function namedBackends({ config, outgoingAuth }: CanonicalVirtualMCPServerSpec): NamedBackend[] {
  const { aggregation, operational } = config
  const at = 'spec.config.aggregation'
  return [
    ...Object.keys(outgoingAuth.backends).map((name) => ({ field: `spec.outgoingAuth.backends.${name}`, name })),
    ...aggregation.tools.map(({ workload: name }, index) => ({ field: `${at}.tools[${index}].workload`, name })),
    ...aggregation.conflictResolutionConfig.priorityOrder.map((name, index) => ({
      field: `${at}.conflictResolutionConfig.priorityOrder[${index}]`,
      name,
    })),
    ...Object.entries(aggregation.conflictResolutionConfig.winners).map(([tool, name]) => ({
      field: `${at}.conflictResolutionConfig.winners.${tool}`,
      name,
    })),
    ...Object.keys(operational.timeouts.perWorkload).map((name) => ({
      field: `spec.config.operational.timeouts.perWorkload.${name}`,
      name,
    })),
  ]
}

function memberNames({ servers, remoteProxies, entries }: GroupMembers): Set<string> {
  return new Set([...servers, ...remoteProxies, ...entries].map(({ metadata }) => metadata.name))
}

function invalid(message: string): Blocker {
  return { condition: Condition.Valid, reason: Reason.ValidationFailed, message }
}
