import { objectsAt } from '@thv/kernel/json'
import type { ConditionUpdate, Container, Deployment, PodSpec } from '@thv/kube'
import { MCPServerAnnotation } from '@thv/resources/kinds/mcp-server/constants'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import { CHECKSUM_VARIABLE, GENERATION_VARIABLE, RUN_CONFIG_FOLDER } from '@thv/runconfig/run-config-mount'
import { type EnvVar, unique, type Volume, type VolumeMount } from '../deployment/contribution.ts'
import { WorkloadAnnotation } from '../deployment/template/annotations.ts'
import { mergeEnvironment } from '../deployment/template/container-variables.ts'
import { pullSecrets } from '../deployment/template/pull-secrets.ts'
import { PROXY_CONTAINER } from '../deployment/template/template-merge.ts'
import type { TemplateProblem } from '../deployment/template/template-problem.ts'
import { templatedDeployment, templateHash } from '../deployment/template/templated-deployment.ts'
import type { OperatorSettings } from '../operator-settings.ts'
import type { Contribution } from './contribution.ts'
import { withOwnKeys, workloadLabels } from './labels.ts'
import { type ProxyKind, proxyNames } from './names.ts'
import { overrideProblems } from './override-problems.ts'
import { serviceAccountProblems } from './service-account.ts'

export type ProxySpec = Pick<CanonicalMCPServerSpec, 'transport' | 'proxyPort' | 'resources' | 'resourceOverrides'> & {
  /** For an MCPRemoteProxy only: that of an MCPServer is about the pods of the server. */
  readonly podTemplateSpec?: Record<string, unknown>
  readonly serviceAccount?: string
}

export interface ProxyDeploymentInput {
  readonly kind: ProxyKind
  readonly name: string
  readonly namespace: string
  readonly spec: ProxySpec
  readonly settings: Pick<
    OperatorSettings,
    'runnerImage' | 'defaultImagePullSecrets' | 'platform' | 'podSecurity' | 'podNamespace' | 'operatorAccount'
  >
  /** Of the RunConfig that the pods are made for. */
  readonly runConfigChecksum: string
  /** The guard number in that RunConfig. */
  readonly generation: number
  readonly contributions: readonly Contribution[]
  /** Undefined: the number is left to an autoscaler or to kubectl scale. */
  readonly replicas: number | undefined
  readonly restartedAt?: string | undefined
  readonly secretsHash?: string | undefined
}

export interface ProxyDeployment {
  readonly deployment: Deployment
  /** Variables of which one value is not used: `shadowedCondition` tells them. */
  readonly shadowedVariables: readonly string[]
  /** When there are any, the Deployment is made without `podTemplateSpec` and must not be applied: `problemBlockers` tells why. */
  readonly problems: readonly TemplateProblem[]
  /** `PodTemplateValid`, when there is a template that is used. */
  readonly conditions: readonly ConditionUpdate[]
}

const GRACE_SECONDS = 75
const CONFIG_VOLUME = 'runconfig'
const TMP_VOLUME = 'tmp'

export function proxyDeployment(input: ProxyDeploymentInput): ProxyDeployment {
  const { kind, name, namespace, spec, settings } = input
  const overrides = spec.resourceOverrides.proxyDeployment
  const labels = workloadLabels(kind, name)
  const { env, shadowed } = environmentOf(input)
  const patch = kind === 'MCPRemoteProxy' ? spec.podTemplateSpec : undefined
  const made = templatedDeployment({
    name: proxyNames(kind, name).deployment,
    namespace,
    labels: withOwnKeys(overrides.labels, labels),
    annotations: withOwnKeys(overrides.annotations, templateHash(patch)),
    selector: labels,
    replicas: input.replicas,
    // Two proxies of one stdio server would both hold its stdin.
    recreate: spec.transport === 'stdio',
    base: {
      metadata: {
        labels: withOwnKeys(overrides.podTemplateMetadataOverrides.labels, labels),
        annotations: withOwnKeys(overrides.podTemplateMetadataOverrides.annotations, templateAnnotations(input)),
      },
      spec: podSpec(input, env),
    },
    patch,
    pods: 'the pods of the proxy',
    finish: withTmp,
    settings,
  })
  const account = kind === 'MCPRemoteProxy' ? serviceAccountProblems(spec.serviceAccount, { namespace, settings }) : []
  return {
    deployment: made.deployment,
    shadowedVariables: [...new Set([...shadowed, ...made.shadowed])].sort(),
    problems: [...overrideProblems(spec), ...made.problems, ...account],
    conditions: made.conditions,
  }
}

function templateAnnotations({ kind, runConfigChecksum, generation, restartedAt, secretsHash }: ProxyDeploymentInput) {
  return {
    [WorkloadAnnotation.runConfigChecksum]: runConfigChecksum,
    ...(kind === 'MCPServer' && { [WorkloadAnnotation.mcpServerGeneration]: String(generation) }),
    ...(secretsHash !== undefined && { [WorkloadAnnotation.secretsHash]: secretsHash }),
    ...(restartedAt !== undefined && { [MCPServerAnnotation.restartedAt]: restartedAt }),
  }
}

function podSpec(input: ProxyDeploymentInput, env: readonly EnvVar[]): PodSpec {
  const { kind, name, spec, settings, contributions } = input
  const names = proxyNames(kind, name)
  const secrets = pullSecrets(settings.defaultImagePullSecrets, spec.resourceOverrides.proxyDeployment.imagePullSecrets)
  return {
    serviceAccountName: (kind === 'MCPRemoteProxy' ? spec.serviceAccount : undefined) ?? names.runnerAccount,
    // The proxy of a remote server never speaks to the API.
    automountServiceAccountToken: kind === 'MCPServer',
    enableServiceLinks: false,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    ...(secrets.length > 0 && { imagePullSecrets: secrets }),
    volumes: unique<Volume>('name', [
      { name: CONFIG_VOLUME, configMap: { name: names.runConfig } },
      { name: TMP_VOLUME, emptyDir: {} },
      ...contributions.flatMap(({ volumes = [] }) => volumes),
    ]),
    containers: [container(input, env)],
  }
}

function container({ spec, settings, contributions }: ProxyDeploymentInput, env: readonly EnvVar[]): Container {
  const resources = Object.fromEntries(Object.entries(spec.resources).filter(([, amounts]) => Object.keys(amounts).length > 0))
  return {
    name: PROXY_CONTAINER,
    image: settings.runnerImage,
    command: ['thv-proxyrunner'],
    args: ['run'],
    env,
    ports: [{ name: 'http', containerPort: spec.proxyPort, protocol: 'TCP' }],
    ...(Object.keys(resources).length > 0 && { resources }),
    ...PROBES,
    volumeMounts: unique<VolumeMount>('mountPath', [
      { name: CONFIG_VOLUME, mountPath: RUN_CONFIG_FOLDER, readOnly: true },
      { name: TMP_VOLUME, mountPath: '/tmp' },
      ...contributions.flatMap(({ volumeMounts = [] }) => volumeMounts),
    ]),
  }
}

/** The root of every container is read-only, of sidecars too, and hardly a program gets by without /tmp. */
function withTmp(spec: PodSpec): PodSpec {
  const mount = (container: Container): Container => {
    const mounts = objectsAt(container, 'volumeMounts')
    if (mounts.some(({ mountPath }) => /^\/tmp\/?$/.test(String(mountPath)))) return container
    return { ...container, volumeMounts: [...mounts, { name: TMP_VOLUME, mountPath: '/tmp' }] }
  }
  return { ...spec, containers: spec.containers.map(mount), ...(spec.initContainers && { initContainers: spec.initContainers.map(mount) }) }
}

const probe = (path: string) => ({ httpGet: { path, port: 'http' } })

/** Before it listens the runner waits up to three minutes for the mounted file to become the right one, so starting may take longer. */
const PROBES = {
  startupProbe: { ...probe('/health'), periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 210 },
  livenessProbe: { ...probe('/health'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
  readinessProbe: { ...probe('/ready'), periodSeconds: 2, timeoutSeconds: 3, failureThreshold: 3 },
}

const SECRET_PREFIX = 'TOOLHIVE_SECRET_'

/** Settings of the operator, then additions of the user, then defaults for the rest. */
function environmentOf({ kind, spec, settings, contributions }: ProxyDeploymentInput) {
  const own: EnvVar[] = [
    ...contributions.flatMap(({ env = [] }) => env),
    fromAnnotation(CHECKSUM_VARIABLE, WorkloadAnnotation.runConfigChecksum),
    ...(kind === 'MCPServer'
      ? [
          fromAnnotation(GENERATION_VARIABLE, WorkloadAnnotation.mcpServerGeneration),
          // Its Events count while this pod lives.
          { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          // So that the runner makes the pods of the server by the same rules.
          { name: 'OPERATOR_OPENSHIFT', value: String(settings.platform === 'openshift') },
        ]
      : []),
    { name: 'TOOLHIVE_RUNTIME', value: 'kubernetes' },
  ]
  const { env, shadowed } = mergeEnvironment(own, spec.resourceOverrides.proxyDeployment.env)
  const defaults: EnvVar[] = [
    { name: 'XDG_CONFIG_HOME', value: '/tmp' },
    { name: 'HOME', value: '/tmp' },
    { name: 'UNSTRUCTURED_LOGS', value: 'false' },
    ...(env.some(({ name }) => name.startsWith(SECRET_PREFIX)) ? [{ name: 'TOOLHIVE_SECRETS_PROVIDER', value: 'environment' }] : []),
  ]
  return { env: [...env, ...defaults.filter(({ name }) => !env.some((entry) => entry.name === name))], shadowed }
}

function fromAnnotation(name: string, annotation: string): EnvVar {
  return { name, valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${annotation}']` } } }
}
