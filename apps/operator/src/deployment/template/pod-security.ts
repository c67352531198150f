import { objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'
import type { ConditionUpdate, PodSpec } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { TemplateProblem } from './template-problem.ts'

/** Levels of the Pod Security Standards of Kubernetes, from the most to the least that a pod may do. */
export const POD_SECURITY_LEVELS = ['privileged', 'baseline', 'restricted'] as const
export type PodSecurityLevel = (typeof POD_SECURITY_LEVELS)[number]

export interface SecurityFinding {
  /** Below the spec of the pod, such as `containers[web].securityContext.privileged`; items of lists by their name. */
  readonly path: string
  /** The strictest level that still allows it lies above this one. */
  readonly exceeds: 'baseline' | 'restricted'
}

/** Fields of a pod spec, whose security contexts are filled in, that exceed the levels `baseline` and `restricted`. Pure. */
export function podSecurityFindings(spec: UnknownObject): SecurityFinding[] {
  const findings: SecurityFinding[] = []
  const report = (exceeds: SecurityFinding['exceeds'], path: string) => void findings.push({ path, exceeds })

  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) if (spec[field] === true) report('baseline', field)
  for (const volume of objectsAt(spec, 'volumes')) {
    const type = Object.keys(volume).find((member) => member !== 'name')
    if (type === 'hostPath') report('baseline', `volumes[${volume['name']}].hostPath`)
    else if (type !== undefined && !SAFE_VOLUMES.has(type)) report('restricted', `volumes[${volume['name']}].${type}`)
  }
  const context = objectAt(spec, 'securityContext')
  for (const { name } of objectsAt(context, 'sysctls')) {
    if (!SAFE_SYSCTLS.has(String(name))) report('baseline', `securityContext.sysctls[${name}]`)
  }
  checkContext(context, 'securityContext', report)
  for (const list of ['initContainers', 'containers']) {
    for (const container of objectsAt(spec, list)) checkContainer(container, `${list}[${container['name']}]`, report)
  }
  return findings
}

/** Whether a pod with this finding is refused at the level. */
export function isRefusedAt(level: PodSecurityLevel, { exceeds }: SecurityFinding): boolean {
  return level === 'restricted' || (level === 'baseline' && exceeds === 'baseline')
}

type Report = (exceeds: SecurityFinding['exceeds'], path: string) => void

const SAFE_VOLUMES = new Set('configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret'.split(' '))
const SAFE_SYSCTLS = new Set([
  'kernel.shm_rmid_forced',
  ...[
    'ip_local_port_range tcp_syncookies ping_group_range ip_unprivileged_port_start ip_local_reserved_ports tcp_keepalive_time',
    'tcp_fin_timeout tcp_keepalive_intvl tcp_keepalive_probes tcp_rmem tcp_wmem',
  ].flatMap((names) => names.split(' ').map((name) => `net.ipv4.${name}`)),
])
const DEFAULT_CAPABILITIES = new Set(
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT'.split(' '),
)
const SAFE_SELINUX = ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']
const SAFE_PROFILES = ['RuntimeDefault', 'Localhost']

/** Fields that both a pod and a container may set. */
function checkContext(context: UnknownObject, at: string, report: Report): void {
  const seLinux = objectAt(context, 'seLinuxOptions')
  if (!SAFE_SELINUX.includes(String(seLinux['type'] ?? ''))) report('baseline', `${at}.seLinuxOptions.type`)
  for (const field of ['user', 'role']) if (seLinux[field]) report('baseline', `${at}.seLinuxOptions.${field}`)
  for (const profile of ['appArmorProfile', 'seccompProfile']) {
    const { type } = objectAt(context, profile)
    if (type !== undefined && !SAFE_PROFILES.includes(String(type))) report('baseline', `${at}.${profile}.type`)
  }
  if (objectAt(context, 'windowsOptions')['hostProcess'] === true) report('baseline', `${at}.windowsOptions.hostProcess`)
  if (context['runAsNonRoot'] === false) report('restricted', `${at}.runAsNonRoot`)
  if (context['runAsUser'] === 0) report('restricted', `${at}.runAsUser`)
}

function checkContainer(container: UnknownObject, at: string, report: Report): void {
  const context = objectAt(container, 'securityContext')
  const own = `${at}.securityContext`
  checkContext(context, own, report)
  if (context['privileged'] === true) report('baseline', `${own}.privileged`)
  if ((context['procMount'] ?? 'Default') !== 'Default') report('baseline', `${own}.procMount`)
  if (context['allowPrivilegeEscalation'] !== false) report('restricted', `${own}.allowPrivilegeEscalation`)
  const { add, drop } = objectAt(context, 'capabilities')
  for (const name of Array.isArray(add) ? add : []) {
    if (!DEFAULT_CAPABILITIES.has(String(name))) report('baseline', `${own}.capabilities.add[${name}]`)
    else if (name !== 'NET_BIND_SERVICE') report('restricted', `${own}.capabilities.add[${name}]`)
  }
  if (!Array.isArray(drop) || !drop.includes('ALL')) report('restricted', `${own}.capabilities.drop`)
  for (const port of objectsAt(container, 'ports')) {
    if (port['hostPort']) report('baseline', `${at}.ports[${port['containerPort']}].hostPort`)
  }
  for (const [path, handler] of handlersOf(container)) {
    for (const kind of ['httpGet', 'tcpSocket']) if (objectAt(handler, kind)['host']) report('baseline', `${at}.${path}.${kind}.host`)
  }
}

function handlersOf(container: UnknownObject): [string, UnknownObject][] {
  const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'].map((name): [string, UnknownObject] => [
    name,
    objectAt(container, name),
  ])
  const lifecycle = objectAt(container, 'lifecycle')
  const hooks = ['postStart', 'preStop'].map((name): [string, UnknownObject] => [`lifecycle.${name}`, objectAt(lifecycle, name)])
  return [...probes, ...hooks]
}

/** The fields that the operator rejects, or the condition that names the fields above `baseline`. */
export interface SecurityVerdict {
  readonly problems: readonly TemplateProblem[]
  readonly conditions: readonly ConditionUpdate[]
}

/** @param fieldOf the path in the spec of the resource for a path in the pod */
export function judgePodSecurity(spec: PodSpec, level: PodSecurityLevel, fieldOf: (path: string) => string): SecurityVerdict {
  const findings = podSecurityFindings(spec as unknown as UnknownObject)
  const refused = findings.filter((finding) => isRefusedAt(level, finding))
  const problems = refused.map(({ path }) => ({
    path: fieldOf(path),
    message: `exceeds the pod security level ${level}, which is the most that this operator allows (operator.podSecurity of its chart): remove it`,
  }))
  const beyond = level === 'privileged' ? findings.filter(({ exceeds }) => exceeds === 'baseline') : []
  if (beyond.length === 0) return { problems, conditions: [] }
  const named = beyond.slice(0, MAX_NAMED).map(({ path }) => fieldOf(path))
  const more = beyond.length > named.length ? ` and ${beyond.length - named.length} more` : ''
  const message = `Exceeds the pod security level baseline: ${named.join(', ')}${more}. The pods run as asked for.`
  return {
    problems,
    conditions: [{ type: WorkloadCondition.PodSecurity, status: 'False', reason: WorkloadReason.ExceedsBaseline, message }],
  }
}

const MAX_NAMED = 10
