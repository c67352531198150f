import type { ConditionUpdate, Container, Deployment, PodSpec } from '@thv/kube'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { type Contribution, type EnvVar, secretVariable, unique, type Volume, type VolumeMount } from '../../../deployment/contribution.ts'
import { WorkloadAnnotation } from '../../../deployment/template/annotations.ts'
import { mergeEnvironment } from '../../../deployment/template/container-variables.ts'
import { pullSecrets } from '../../../deployment/template/pull-secrets.ts'
import type { TemplateRole } from '../../../deployment/template/template-merge.ts'
import type { TemplateProblem } from '../../../deployment/template/template-problem.ts'
import { templatedDeployment, templateHash } from '../../../deployment/template/templated-deployment.ts'
import type { OperatorSettings } from '../../../operator-settings.ts'
import { workloadLabels } from '../../../proxy/labels.ts'
import { virtualServerNames } from '../../../proxy/names.ts'
import { serviceAccountProblems } from '../../../proxy/service-account.ts'

export const VMCP_CONTAINER = 'vmcp'
export const VMCP_PORT = 4483
export const CONFIG_FILE = 'config.yaml'
const CONFIG_FOLDER = '/etc/vmcp-config'
const CONFIG_VOLUME = 'vmcp-config'
/** Key of the seal in its Secret. */
export const SEAL_KEY = 'hmac-secret'
const SEAL_VARIABLE = 'VMCP_SESSION_HMAC_SECRET'
const GRACE_SECONDS = 75

const ROLE: TemplateRole = {
  container: VMCP_CONTAINER,
  noun: 'the virtual server',
  account: 'use spec.serviceAccount',
  image: 'the operator chooses it (TOOLHIVE_VMCP_IMAGE)',
  port: 'the Service leads to it',
}

export interface VirtualDeploymentInput {
  readonly name: string
  readonly namespace: string
  readonly spec: CanonicalVirtualMCPServerSpec
  readonly settings: Pick<
    OperatorSettings,
    | 'vmcpImage'
    | 'proxyHost'
    | 'clusterDomain'
    | 'defaultImagePullSecrets'
    | 'platform'
    | 'podSecurity'
    | 'podNamespace'
    | 'operatorAccount'
  >
  /** Of the part of the file that needs a restart. */
  readonly configChecksum: string
  readonly contributions: readonly Contribution[]
  /** Undefined: the number is left to an autoscaler or to kubectl scale. */
  readonly replicas: number | undefined
  readonly secretsHash: string | undefined
  /** Whether the old pods must go before the new ones come. */
  readonly recreate: boolean
}

export interface VirtualDeployment {
  readonly deployment: Deployment
  readonly shadowedVariables: readonly string[]
  /** When there are any, the Deployment must not be applied. */
  readonly problems: readonly TemplateProblem[]
  readonly conditions: readonly ConditionUpdate[]
}

/** Pure. */
export function virtualDeployment(input: VirtualDeploymentInput): VirtualDeployment {
  const { name, namespace, spec, settings, replicas, recreate } = input
  const labels = workloadLabels('VirtualMCPServer', name)
  const { env, shadowed } = mergeEnvironment(environmentOf(input))
  const patch = spec.podTemplateSpec
  const made = templatedDeployment({
    name: virtualServerNames(name).deployment,
    namespace,
    labels,
    annotations: templateHash(patch),
    selector: labels,
    replicas,
    recreate,
    base: { metadata: { labels, annotations: annotationsOf(input) }, spec: podSpec(input, env) },
    patch,
    role: ROLE,
    pods: 'the pods',
    settings,
  })
  return {
    deployment: made.deployment,
    shadowedVariables: [...new Set([...shadowed, ...made.shadowed])].sort(),
    problems: [...made.problems, ...serviceAccountProblems(spec.serviceAccount, { namespace, settings })],
    conditions: made.conditions,
  }
}

function annotationsOf({ configChecksum, secretsHash }: VirtualDeploymentInput): Record<string, string> {
  return {
    [WorkloadAnnotation.runConfigChecksum]: configChecksum,
    ...(secretsHash !== undefined && { [WorkloadAnnotation.secretsHash]: secretsHash }),
  }
}

function podSpec({ name, spec, settings, contributions }: VirtualDeploymentInput, env: readonly EnvVar[]): PodSpec {
  const names = virtualServerNames(name)
  const secrets = pullSecrets(settings.defaultImagePullSecrets, spec.imagePullSecrets)
  const container: Container = {
    name: VMCP_CONTAINER,
    image: settings.vmcpImage,
    command: ['vmcp'],
    args: [
      'serve',
      `--config=${CONFIG_FOLDER}/${CONFIG_FILE}`,
      `--host=${settings.proxyHost}`,
      `--port=${VMCP_PORT}`,
      ...(spec.config.operational.logLevel === 'debug' ? ['--debug'] : []),
    ],
    env,
    ports: [{ name: 'http', containerPort: VMCP_PORT, protocol: 'TCP' }, ...metricsPort(spec)],
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '500m', memory: '512Mi' } },
    startupProbe: { ...probe('/health'), periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 120 },
    livenessProbe: { ...probe('/health'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
    readinessProbe: { ...probe('/readyz'), periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 3 },
    volumeMounts: unique<VolumeMount>('mountPath', [
      { name: CONFIG_VOLUME, mountPath: CONFIG_FOLDER, readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
      ...contributions.flatMap(({ volumeMounts = [] }) => volumeMounts),
    ]),
  }
  return {
    serviceAccountName: spec.serviceAccount ?? names.account,
    // It reports its backends in the status.
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    ...(secrets.length > 0 && { imagePullSecrets: secrets }),
    volumes: unique<Volume>('name', [
      { name: CONFIG_VOLUME, configMap: { name: names.config } },
      { name: 'tmp', emptyDir: {} },
      ...contributions.flatMap(({ volumes = [] }) => volumes),
    ]),
    containers: [container],
  }
}

/** Of /metrics alone. */
function metricsPort({ config: { telemetry } }: CanonicalVirtualMCPServerSpec) {
  const { enablePrometheusMetricsPath: isServed, prometheusPort: containerPort } = telemetry
  return isServed && containerPort !== VMCP_PORT ? [{ name: 'metrics', containerPort, protocol: 'TCP' }] : []
}

const probe = (path: string) => ({ httpGet: { path, port: 'http' } })

function environmentOf({ name, namespace, spec, settings, contributions }: VirtualDeploymentInput): EnvVar[] {
  const isDiscovering = spec.outgoingAuth.source === 'discovered'
  return [
    { name: 'VMCP_NAME', value: name },
    { name: 'VMCP_NAMESPACE', value: namespace },
    secretVariable(SEAL_VARIABLE, { name: virtualServerNames(name).seal, key: SEAL_KEY }),
    ...(isDiscovering ? [{ name: 'CLUSTER_DOMAIN', value: settings.clusterDomain }] : []),
    ...contributions.flatMap(({ env = [] }) => env),
    { name: 'HOME', value: '/tmp' },
  ]
}
