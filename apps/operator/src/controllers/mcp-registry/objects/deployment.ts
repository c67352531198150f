import { configHash } from '@thv/kernel/config-hash'
import { objectsAt, type UnknownObject } from '@thv/kernel/json'
import type { Container, Deployment, PodSpec, PodTemplateSpec } from '@thv/kube'
import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import { WorkloadAnnotation } from '../../../deployment/template/annotations.ts'
import { podTemplateProblems } from '../../../deployment/template/pod-template-spec.ts'
import { pullSecrets } from '../../../deployment/template/pull-secrets.ts'
import type { TemplateRole } from '../../../deployment/template/template-merge.ts'
import type { TemplateProblem } from '../../../deployment/template/template-problem.ts'
import { type TemplatedDeployment, templatedDeployment, templateHash } from '../../../deployment/template/templated-deployment.ts'
import type { ExportScope } from '../../../export/export-scope.ts'
import type { OperatorSettings } from '../../../operator-settings.ts'
import { databaseVariables } from '../config/database-config.ts'
import { CONFIG_FILE, CONFIG_FOLDER, DATA_FOLDER, PGPASS_FOLDER, STORAGE_VOLUME } from '../config/registry-place.ts'
import { BUDGET_ANNOTATION } from './disruption-budget.ts'
import { API_PORT, apiLabels, CONFIG_HASH, INTERNAL_PORT, podLabels, podSelector, registryNames } from './names.ts'
import { podFiles } from './pod-volumes.ts'

export const API_CONTAINER = 'registry-api'

const ROLE: TemplateRole = {
  container: API_CONTAINER,
  noun: 'the registry API',
  account: 'the operator makes the account',
  image: 'the operator chooses it (TOOLHIVE_REGISTRY_API_IMAGE)',
  port: 'the Service leads to it',
}

export interface DeploymentInput {
  readonly name: string
  readonly namespace: string
  readonly spec: CanonicalMCPRegistrySpec
  readonly settings: Pick<OperatorSettings, 'registryImage' | 'defaultImagePullSecrets' | 'platform' | 'podSecurity'>
  /** Undefined: the number is left alone. */
  readonly replicas: number | undefined
  /** Several pods run, so that nodes are drained one after the other. */
  readonly hasBudget: boolean
  /** The part of the configuration that a running server cannot take over. */
  readonly fixed: object
  readonly exported: ExportScope | undefined
  /** Of the Secrets whose content reaches the server as variables. */
  readonly secretsHash: string | undefined
}

/** Pure. */
export function registryDeployment(input: DeploymentInput): TemplatedDeployment {
  const { name, namespace, spec, settings, replicas, hasBudget } = input
  const base: PodTemplateSpec = { metadata: { labels: podLabels(name), annotations: templateAnnotations(input) }, spec: podSpec(input) }
  const patch = spec.podTemplateSpec
  return templatedDeployment({
    name: registryNames(name).deployment,
    namespace,
    labels: apiLabels(name),
    annotations: { ...templateHash(patch), ...(hasBudget && { [BUDGET_ANNOTATION]: 'true' }) },
    selector: podSelector(name),
    replicas,
    recreate: keepsStore(spec),
    base,
    patch,
    role: ROLE,
    pods: 'the API pods',
    problems: userFileProblems(spec, base),
    settings,
  })
}

/** Whether the pods of a Deployment read the cluster themselves. */
export function readsCluster({ spec }: Deployment): boolean {
  return spec?.template?.spec?.['automountServiceAccountToken'] === true
}

/** A store on a volume of the user has one writer: the old pod goes before the new one comes. */
function keepsStore({ volumes, databaseConfig }: CanonicalMCPRegistrySpec): boolean {
  return databaseConfig === undefined && volumes.some((volume) => volume['name'] === STORAGE_VOLUME)
}

function templateAnnotations({ fixed, secretsHash }: DeploymentInput): Record<string, string> {
  return {
    [CONFIG_HASH]: configHash(fixed),
    ...(secretsHash !== undefined && { [WorkloadAnnotation.secretsHash]: secretsHash }),
  }
}

const GRACE_SECONDS = 30
/** A pod that goes answers until the Service leads to the others alone. */
const STOP_DELAY = '3s'

function podSpec({ name, spec, settings, replicas, exported, hasBudget }: DeploymentInput): PodSpec {
  const { volumes, mounts } = podFiles(name, spec, exported)
  const secrets = pullSecrets(settings.defaultImagePullSecrets, spec.imagePullSecrets)
  const spread = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: podSelector(name) },
  }
  const container: Container = {
    name: API_CONTAINER,
    image: settings.registryImage,
    command: ['thv-registry-api'],
    args: ['serve', `--config=${CONFIG_FOLDER}/${CONFIG_FILE}`],
    env: [
      ...databaseVariables(spec.databaseConfig),
      ...(spec.pgpassSecretRef === undefined ? [] : [{ name: 'PGPASSFILE', value: `${PGPASS_FOLDER}/.pgpass` }]),
      { name: 'THV_REGISTRY_DATA_DIR', value: DATA_FOLDER },
      ...(hasBudget ? [{ name: 'THV_REGISTRY_STOP_DELAY', value: STOP_DELAY }] : []),
      { name: 'HOME', value: '/tmp' },
    ],
    ports: [
      { name: 'http', containerPort: API_PORT, protocol: 'TCP' },
      { name: 'internal', containerPort: INTERNAL_PORT, protocol: 'TCP' },
    ],
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '500m', memory: '512Mi' } },
    startupProbe: { ...probe('/health'), periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 120 },
    livenessProbe: { ...probe('/health'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
    readinessProbe: { ...probe('/readiness'), periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 3 },
    volumeMounts: mounts,
  }
  return {
    serviceAccountName: registryNames(name).account,
    // Needed by a server that reads the cluster itself.
    automountServiceAccountToken: exported?.mode === 'server',
    enableServiceLinks: false,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    ...(secrets.length > 0 && { imagePullSecrets: secrets }),
    ...((replicas ?? 1) > 1 && { topologySpreadConstraints: [spread] }),
    volumes,
    containers: [container],
  }
}

const probe = (path: string) => ({ httpGet: { path, port: 'internal' } })

/** Volumes and mounts of the spec must be ones, and must not take names or paths of the operator. */
function userFileProblems(spec: CanonicalMCPRegistrySpec, base: PodTemplateSpec): TemplateProblem[] {
  const problems: TemplateProblem[] = []
  const report = (path: string, message: string) => void problems.push({ path, message })
  spec.volumes.forEach((volume, index) => {
    problems.push(...podTemplateProblems(volume, { at: `spec.volumes[${index}]`, type: 'Volume' }))
  })
  spec.volumeMounts.forEach((mount, index) => {
    problems.push(...podTemplateProblems(mount, { at: `spec.volumeMounts[${index}]`, type: 'VolumeMount' }))
  })
  const podVolumes = objectsAt((base.spec ?? {}) as UnknownObject, 'volumes')
  for (const name of doubles(podVolumes.map((volume) => String(volume['name']))))
    report('spec.volumes', `must not use the name ${name}, which the operator or another volume has`)
  const [container] = base.spec?.containers ?? []
  const mounts = objectsAt((container ?? {}) as UnknownObject, 'volumeMounts')
  for (const path of doubles(mounts.map(({ mountPath }) => String(mountPath).replace(/\/+$/, ''))))
    report('spec.volumeMounts', `must not use the path ${path}, which the operator or another mount has`)
  const known = new Set(podVolumes.map(({ name }) => name))
  spec.volumeMounts.forEach(({ name }, index) => {
    if (!known.has(name)) report(`spec.volumeMounts[${index}].name`, 'names no volume of the pod')
  })
  return problems
}

function doubles(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))]
}
