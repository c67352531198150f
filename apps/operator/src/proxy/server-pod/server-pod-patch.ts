import { objectAt, objectsAt, type UnknownObject, withoutNulls } from '@thv/kernel/json'
import type { PodSpec } from '@thv/kube'
import { withSecurityContexts } from '@thv/kube/objects/pod-security'
import { MCPServerAnnotation, MCPServerCondition, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import { type Blocker, blocked, type EnvVar, secretVariable } from '../../deployment/contribution.ts'
import { secretsHash, WorkloadAnnotation } from '../../deployment/template/annotations.ts'
import { mergeEnvironment, shadowedCondition } from '../../deployment/template/container-variables.ts'
import { judgePodSecurity, type SecurityVerdict } from '../../deployment/template/pod-security.ts'
import { pullSecrets } from '../../deployment/template/pull-secrets.ts'
import { isVariableName } from '../../deployment/template/scalars.ts'
import { problemBlockers, TEMPLATE_PATH, type TemplateProblem, templateCondition } from '../../deployment/template/template-problem.ts'
import type { OperatorSettings } from '../../operator-settings.ts'
import type { Lookup } from '../../references/lookup.ts'
import { templateSecrets } from '../../references/template-secrets.ts'
import type { Resolved } from '../contribution.ts'
import { serverNames } from '../names.ts'
import { serviceAccountProblems } from '../service-account.ts'
import { type ImageRun, imageRun, packageProblems } from './package-image.ts'
import { MCP_CONTAINER, mcpTemplateProblems, volumeProblems } from './server-template-problems.ts'

export interface McpPodInput {
  readonly name: string
  readonly namespace: string
  readonly spec: Pick<
    CanonicalMCPServerSpec,
    'image' | 'transport' | 'mcpPort' | 'args' | 'env' | 'secrets' | 'volumes' | 'podTemplateSpec' | 'serviceAccount' | 'resourceOverrides'
  >
  readonly settings: Pick<
    OperatorSettings,
    'defaultImagePullSecrets' | 'packageImages' | 'platform' | 'podSecurity' | 'podNamespace' | 'operatorAccount'
  >
  /** The annotation of the user, as it is: a new value makes new pods. */
  readonly restartedAt?: string | undefined
  readonly lookup: Pick<Lookup, 'secret'>
}

/** The pod patch of the MCP server for the runner, which lays image, transport, labels and security over it. */
export function resolveMcpPod(input: McpPodInput): Resolved {
  const { spec, lookup } = input
  const template = withoutNulls(spec.podTemplateSpec ?? {})
  const blockers = [
    ...problemBlockers([
      ...mcpTemplateProblems(template, spec),
      ...packageProblems(spec),
      ...variableProblems(spec),
      ...volumeProblems(template, spec),
      ...serviceAccountProblems(spec.serviceAccount, input),
    ]),
    ...missingSecrets(spec, lookup),
  ]
  if (blockers.length > 0) return blocked(...blockers)

  const run = imageRun(spec.image, input.settings)
  const environment = environmentOf(spec, template, run.env)
  const patch = podPatch(input, template, { ...run, env: environment.patch })
  const security = securityOf(patch, input)
  if (security.problems.length > 0) return blocked(...problemBlockers(security.problems))
  return {
    ok: true,
    contribution: {
      runConfig: {
        image: run.image,
        k8s_pod_template_patch: patch,
        env_vars: environment.vars,
      },
      conditions: [
        ...templateCondition(spec.podTemplateSpec, 'the pods of the MCP server'),
        ...shadowedCondition(environment.shadowed),
        ...security.conditions,
      ],
    },
  }
}

/** Of the pods with the security contexts that the runner fills in. */
function securityOf(patch: UnknownObject, { spec, settings }: McpPodInput): SecurityVerdict {
  const pod = withSecurityContexts(objectAt(patch, 'spec') as unknown as PodSpec, settings.platform)
  return judgePodSecurity(pod, settings.podSecurity, (path) => {
    const index = spec.volumes.findIndex(({ name }) => path === `volumes[${name}].hostPath`)
    return index === -1 ? `${TEMPLATE_PATH}.spec.${path}` : `spec.volumes[${index}].hostPath`
  })
}

function podPatch({ name, spec, settings, restartedAt, lookup }: McpPodInput, template: UnknownObject, run: ImageRun): UnknownObject {
  const [metadata, podSpec] = [objectAt(template, 'metadata'), objectAt(template, 'spec')]
  const hash = secretsHash([...spec.secrets.map((secret) => secret.name), ...templateSecrets(template)], lookup)
  const annotations = {
    ...objectAt(metadata, 'annotations'),
    ...(hash !== undefined && { [WorkloadAnnotation.secretsHash]: hash }),
    ...(restartedAt !== undefined && { [MCPServerAnnotation.restartedAt]: restartedAt }),
  }
  const labels = objectAt(metadata, 'labels')
  const secrets = pullSecrets(
    settings.defaultImagePullSecrets,
    spec.resourceOverrides.proxyDeployment.imagePullSecrets,
    objectsAt(podSpec, 'imagePullSecrets').map((secret) => ({ name: String(secret['name']) })),
  )
  const meta = { ...(Object.keys(labels).length > 0 && { labels }), ...(Object.keys(annotations).length > 0 && { annotations }) }
  return {
    ...(Object.keys(meta).length > 0 && { metadata: meta }),
    spec: {
      // The pods of a server have no business with the API, unless the user gives them an account for it.
      ...(spec.serviceAccount === undefined && { automountServiceAccountToken: false }),
      ...podSpec,
      serviceAccountName: spec.serviceAccount ?? serverNames(name).account,
      ...(secrets.length > 0 && { imagePullSecrets: secrets }),
      ...(spec.volumes.length > 0 && { volumes: [...objectsAt(podSpec, 'volumes'), ...folders(spec)] }),
      containers: withOwn(objectsAt(podSpec, 'containers'), run, spec.volumes),
    },
  }
}

/** Under the names that they have in the spec, so that containers of the template can mount them too. */
function folders({ volumes }: McpPodInput['spec']): UnknownObject[] {
  return volumes.map(({ name, hostPath }) => ({ name, hostPath: { path: hostPath } }))
}

function withOwn(
  containers: readonly UnknownObject[],
  { command, env }: ImageRun,
  volumes: McpPodInput['spec']['volumes'],
): UnknownObject[] {
  const others = containers.some(({ name }) => name === MCP_CONTAINER) ? containers : [...containers, { name: MCP_CONTAINER }]
  const mounts = volumes.map(({ name, mountPath, readOnly }) => ({ name, mountPath, ...(readOnly && { readOnly }) }))
  return others.map((container) => {
    if (container['name'] !== MCP_CONTAINER) return container
    const { env: _, ...rest } = container
    return {
      // The template's own command, where it has one: its author fetches the package.
      ...(command !== undefined && { command }),
      ...rest,
      ...(env.length > 0 && { env }),
      ...(mounts.length > 0 && { volumeMounts: [...objectsAt(container, 'volumeMounts'), ...mounts] }),
    }
  })
}

interface McpEnvironment {
  /** RunConfig `env_vars`. */
  readonly vars: Record<string, string>
  /** Of container `mcp` in the patch. */
  readonly patch: readonly EnvVar[]
  readonly shadowed: readonly string[]
}

/** The runner cannot tell a secret of the template from one of the spec, so whatever loses is taken out here. */
function environmentOf(spec: McpPodInput['spec'], template: UnknownObject, runEnv: readonly EnvVar[]): McpEnvironment {
  const forced = transportVariables(spec)
  const secrets = spec.secrets.map((secret) => secretVariable(variableOf(secret), secret))
  const container = objectsAt(objectAt(template, 'spec'), 'containers').find(({ name }) => name === MCP_CONTAINER)
  const given = objectsAt(container ?? {}, 'env') as unknown as EnvVar[]
  const { env, shadowed } = mergeEnvironment(forced, secrets, spec.env, given)
  const missing = runEnv.filter(({ name }) => !env.some((entry) => entry.name === name))
  return {
    vars: Object.fromEntries(env.flatMap((entry) => (spec.env.some((own) => own === entry) ? [[entry.name, entry.value ?? '']] : []))),
    patch: [...env.filter((entry) => secrets.includes(entry) || given.includes(entry)), ...missing],
    shadowed,
  }
}

/** Those that the runner sets, whatever anybody says. */
function transportVariables({ transport, mcpPort }: McpPodInput['spec']): EnvVar[] {
  const values = {
    MCP_TRANSPORT: transport,
    ...(transport !== 'stdio' && { MCP_PORT: mcpPort, FASTMCP_PORT: mcpPort, MCP_HOST: '0.0.0.0' }),
  }
  return Object.entries(values).map(([name, value]) => ({ name, value: String(value) }))
}

function variableOf({ key, targetEnvName }: { key: string; targetEnvName?: string }): string {
  return targetEnvName ?? key
}

function variableProblems({ env, secrets }: McpPodInput['spec']): TemplateProblem[] {
  const words = 'expects a name of letters, digits, _, . and -, not beginning with a digit'
  return [
    ...env.flatMap(({ name, value }, index) => [
      ...(isVariableName(name) ? [] : [{ path: `spec.env[${index}].name`, message: words }]),
      ...(value.includes('\0') ? [{ path: `spec.env[${index}].value`, message: 'must not hold a zero byte' }] : []),
    ]),
    ...secrets.flatMap((secret, index) => {
      if (isVariableName(variableOf(secret))) return []
      const field = secret.targetEnvName === undefined ? 'key' : 'targetEnvName'
      const path = `spec.secrets[${index}].${field}`
      return [{ path, message: field === 'key' ? 'cannot be the name of a variable: set targetEnvName' : words }]
    }),
  ]
}

function missingSecrets({ secrets }: McpPodInput['spec'], lookup: Pick<Lookup, 'secret'>): Blocker[] {
  const missing = secrets.flatMap(({ name, key }) => {
    const secret = lookup.secret(name)
    if (secret === undefined) return [`Secret ${name} does not exist`]
    return secret.keys.has(key) ? [] : [`Secret ${name} has no key ${key}`]
  })
  if (missing.length === 0) return []
  const message = `${[...new Set(missing)].join('; ')}: create what is missing, or correct spec.secrets.`
  return [{ condition: MCPServerCondition.ConfigurationValid, reason: MCPServerReason.SecretNotFound, message }]
}
