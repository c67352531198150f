import type { ConditionUpdate, ConfigMap, Deployment, KubeObject, NetworkPolicy } from '@thv/kube'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import type { Problem } from '@thv/resources/schema/normalize'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { AUTHZ_KEY, RUN_CONFIG_KEY, runConfigChecksum } from '@thv/runconfig/run-config-mount'
import { capReplicas } from '../auth-server/replica-cap.ts'
import type { Blocker } from '../deployment/contribution.ts'
import { type PlannedChild, STOPPED_ANNOTATION, type WorkloadPlan } from '../deployment/deployment-plan.ts'
import { secretsHash, WorkloadAnnotation } from '../deployment/template/annotations.ts'
import { shadowedCondition } from '../deployment/template/container-variables.ts'
import { problemBlockers } from '../deployment/template/template-problem.ts'
import type { OperatorSettings } from '../operator-settings.ts'
import type { Lookup } from '../references/lookup.ts'
import { templateSecrets } from '../references/template-secrets.ts'
import type { Contribution, Resolved, RunConfigDocument } from './contribution.ts'
import { type ConfigComponent, configLabels } from './labels.ts'
import { type ProxyKind, proxyNames } from './names.ts'
import { type ProxySpec, proxyDeployment } from './proxy-deployment.ts'
import { workloadAccess } from './rbac.ts'
import { joinRunConfig, lacksProtection, type RenderedRunConfig, renderRunConfig, type WantedProtections } from './run-config-document.ts'
import { aliasService, proxyService } from './services.ts'

/** Common to both workload kinds once their blocks are resolved. */
export interface WorkloadInput {
  readonly kind: ProxyKind
  readonly object: KubeObject
  readonly spec: ProxySpec &
    Pick<CanonicalMCPServerSpec, 'serviceType' | 'sessionAffinity' | 'resourceOverrides' | 'proxyPort'> &
    Partial<Pick<CanonicalMCPServerSpec, 'backendReplicas'>>
  /** Of `normalise()`: what admission could not refuse. */
  readonly problems: readonly Problem[]
  readonly resolved: readonly Resolved[]
  /** Members that no resolver sets. */
  readonly document: RunConfigDocument
  readonly protections: WantedProtections
  readonly conditions: readonly ConditionUpdate[]
  readonly networkPolicy: NetworkPolicy | undefined
  readonly unwanted: WorkloadPlan['unwanted']
  readonly replicas: number | undefined
  readonly restartedAt: string | undefined
  readonly url: string
  readonly settings: OperatorSettings
  readonly lookup: Lookup
  readonly live: LiveFacts
}

/** The current state of the cluster, as far as the plan depends on it. */
export interface LiveFacts {
  /** Of the ConfigMap that we made. */
  readonly runConfig: string | undefined
  readonly deployment: Deployment | undefined
}

/** All that the workload needs, and what to tell about it. Pure. */
export function planWorkload(input: WorkloadInput): WorkloadPlan {
  const { object, resolved, live } = input
  const contributions = resolved.flatMap(({ contribution }) => (contribution ? [contribution] : []))
  const blockers = [...problemsAsBlockers(input.problems), ...resolved.flatMap((part) => (part.ok ? [] : blockersOf(part)))]
  const base: WorkloadPlan = {
    guards: input.networkPolicy === undefined ? [] : [{ kind: 'NetworkPolicy', object: input.networkPolicy }],
    children: [],
    alias: undefined,
    unwanted: [],
    conditions: [...input.conditions, ...contributions.flatMap(({ conditions = [] }) => conditions)],
    status: Object.assign({}, ...contributions.map(({ status = {} }) => status)),
    blockers,
    unsupported: [],
    stopsWhatRuns: false,
    url: input.url,
  }
  const blockedPlan = (all: readonly Blocker[]): WorkloadPlan => ({
    ...base,
    blockers: all,
    stopsWhatRuns: live.deployment !== undefined && lacksProtection(runningConfig(live), input.protections),
  })
  if (blockers.length > 0) return blockedPlan(blockers)

  const document = joinRunConfig(input.document, contributions)
  const rendering = renderRunConfig(document, { live: live.runConfig, generation: object.metadata.generation ?? 1 })
  if (!rendering.ok)
    return blockedPlan(rendering.problems.map(({ path, message }) => invalid(`the proxy cannot run with this: ${path} ${message}`)))

  const { rendered } = rendering
  const capped = capReplicas(document.embedded_auth_server_config, { replicas: input.replicas, scale: live.deployment?.spec?.replicas })
  const proxy = deploymentOf({ ...input, replicas: capped.replicas }, contributions, rendered)
  if (proxy.problems.length > 0) return blockedPlan(problemBlockers(proxy.problems))
  const alias = aliasService({ ...place(input), spec: input.spec })
  return {
    ...base,
    children: childrenOf(input, { rendered, contributions, deployment: proxy.deployment }),
    alias: alias.service,
    unwanted: [
      ...input.unwanted,
      ...(authzDocumentOf(contributions) === undefined
        ? [{ kind: 'ConfigMap', name: proxyNames(input.kind, object.metadata.name).authz } as const]
        : []),
    ],
    conditions: joinShadowed([
      ...base.conditions,
      ...capped.conditions,
      ...proxy.conditions,
      ...alias.conditions,
      ...shadowedCondition(proxy.shadowedVariables),
    ]),
    unsupported: rendered.unsupported,
  }
}

interface Made {
  readonly rendered: RenderedRunConfig
  readonly contributions: readonly Contribution[]
  readonly deployment: Deployment
}

function childrenOf(input: WorkloadInput, { rendered, contributions, deployment }: Made): PlannedChild[] {
  const { kind, object, spec, settings } = input
  const names = proxyNames(kind, object.metadata.name)
  const authz = authzDocumentOf(contributions)
  const { serviceAccounts, roles, roleBindings } = workloadAccess({ ...place(input), spec, settings })
  return [
    ...serviceAccounts.map((account): PlannedChild => ({ kind: 'ServiceAccount', object: account })),
    ...roles.map((role): PlannedChild => ({ kind: 'Role', object: role })),
    ...roleBindings.map((binding): PlannedChild => ({ kind: 'RoleBinding', object: binding })),
    {
      kind: 'ConfigMap',
      object: configMap(input, { component: 'run-config', name: names.runConfig, key: RUN_CONFIG_KEY, text: rendered.text }),
    },
    ...(authz === undefined
      ? []
      : [{ kind: 'ConfigMap', object: configMap(input, { component: 'authz', name: names.authz, key: AUTHZ_KEY, text: authz }) } as const]),
    { kind: 'Service', object: proxyService({ ...place(input), spec }) },
    { kind: 'Deployment', object: deployment },
  ]
}

interface MountedFile {
  readonly component: ConfigComponent
  /** Of the ConfigMap. */
  readonly name: string
  readonly key: string
  readonly text: string
}

function configMap(input: WorkloadInput, { component, name, key, text }: MountedFile): ConfigMap {
  const workload = place(input)
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: workload.namespace,
      labels: configLabels(component, workload),
      annotations: { [CONTENT_CHECKSUM]: runConfigChecksum(text) },
    },
    data: { [key]: text },
  }
}

function authzDocumentOf(contributions: readonly Contribution[]): string | undefined {
  return contributions.find(({ authzDocument }) => authzDocument !== undefined)?.authzDocument
}

const CONTENT_CHECKSUM = 'toolhive.stacklok.dev/content-checksum'

function deploymentOf(input: WorkloadInput, contributions: readonly Contribution[], rendered: RenderedRunConfig) {
  const { spec, settings, lookup, live, restartedAt } = input
  const ofTemplate = input.kind === 'MCPRemoteProxy' ? templateSecrets(spec.podTemplateSpec) : []
  const wasStopped = live.deployment?.metadata.annotations?.[STOPPED_ANNOTATION] === 'true'
  const mustStop = rendered.unsupported.length > 0
  const replicas = mustStop ? 0 : (input.replicas ?? (wasStopped ? 1 : undefined))
  const proxy = proxyDeployment({
    ...place(input),
    spec,
    settings,
    runConfigChecksum: runConfigChecksum(rendered.text),
    generation: rendered.generation,
    contributions,
    replicas,
    restartedAt,
    secretsHash: secretsHash([...contributions.flatMap(({ secrets = [] }) => secrets), ...ofTemplate], lookup),
  })
  const { metadata, spec: deploymentSpec } = proxy.deployment
  // Stays until it may run again: to stop it a patch has set the number, which does not go away when no apply names it any more.
  const annotations = wasStopped ? { ...metadata.annotations, [STOPPED_ANNOTATION]: String(mustStop) } : metadata.annotations
  const deployment: Deployment = {
    ...proxy.deployment,
    metadata: { ...metadata, ...(annotations && { annotations }) },
    spec: { ...deploymentSpec, ...(mustNotOverlap(input) && { strategy: { type: 'Recreate' } }) },
  }
  return { ...proxy, deployment }
}

/**
 * A change that closes a door must not leave the old pods open until the new ones are ready, which may be never. Once begun, that way is
 * kept to until the rollout is over.
 */
function mustNotOverlap({ live, protections }: WorkloadInput): boolean {
  const { deployment } = live
  if (deployment === undefined) return false
  if (lacksProtection(runningConfig(live), protections)) return true
  const { metadata, spec, status } = deployment
  const isRecreating = (spec?.['strategy'] as { type?: string } | undefined)?.type === 'Recreate'
  const wanted = spec?.replicas ?? 1
  const isOver = status?.observedGeneration === metadata.generation && status?.updatedReplicas === wanted && status.replicas === wanted
  return isRecreating && !isOver
}

/**
 * The RunConfig that the Deployment's pods run with. Undefined when the ConfigMap holds another one: an operator that ended between its
 * two writes leaves a closing RunConfig beside pods that are still open.
 */
function runningConfig({ deployment, runConfig }: LiveFacts): string | undefined {
  const checksum = deployment?.spec?.template?.metadata?.annotations?.[WorkloadAnnotation.runConfigChecksum]
  return runConfig !== undefined && runConfigChecksum(runConfig) === checksum ? runConfig : undefined
}

function place({ kind, object }: WorkloadInput) {
  const { name, namespace = '' } = object.metadata
  return { kind, name, namespace }
}

function problemsAsBlockers(problems: readonly Problem[]): Blocker[] {
  return problems.map(({ code, message }) => ({
    condition: WorkloadCondition.ConfigurationValid,
    reason: code === 'conflicting_spellings' ? WorkloadReason.ConflictingSpellings : WorkloadReason.InvalidSpec,
    message,
  }))
}

/** A resolver may fail without naming a blocker; treat that as a generic one. */
function blockersOf({ blockers }: Extract<Resolved, { ok: false }>): readonly Blocker[] {
  return blockers.length > 0 ? blockers : [invalid('a part of the spec cannot be used: see the other conditions')]
}

function invalid(message: string): Blocker {
  return { condition: WorkloadCondition.ConfigurationValid, reason: WorkloadReason.InvalidSpec, message }
}

/** Proxy and server may both have variables that are set twice: one condition tells of all. */
function joinShadowed(conditions: readonly ConditionUpdate[]): ConditionUpdate[] {
  const isShadow = ({ type }: ConditionUpdate) => type === WorkloadCondition.EnvironmentShadowed
  const [first, ...more] = conditions.filter(isShadow)
  if (first === undefined) return [...conditions]
  const message = [first, ...more].map((condition) => condition.message).join(' ')
  return [...conditions.filter((condition) => !isShadow(condition)), { ...first, message }]
}
