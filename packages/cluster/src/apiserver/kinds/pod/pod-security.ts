import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { type Allocation, at, textAt } from '../../objects/served-kind.ts'
import { forbidden } from '../../objects/status-error.ts'
import { flagAt, givenText, numberAt, objectAt, objectsAt, textsAt } from './validation/fields.ts'

/* The Pod Security Standards, as the label of a namespace asks for them. Always those of the latest version. */

const PODS = { group: '', kind: 'Pod', plural: 'pods' }
const LABEL = 'pod-security.kubernetes.io/enforce'

/** Throws 403 for a pod that its namespace does not take. */
export function permitPod(pod: JsonObject, { store }: Pick<Allocation, 'store'>): void {
  const labels = objectAt(store.get('namespaces', textAt(pod, 'metadata', 'namespace'))?.body, 'metadata', 'labels')
  const level = textAt(labels, LABEL)
  if (level === '' || level === 'privileged') return
  const violations = podViolations(pod, level === 'baseline' ? BASELINE : RESTRICTED)
  if (violations.length === 0) return
  const version = textAt(labels, `${LABEL}-version`) || 'latest'
  const why = `violates PodSecurity ${JSON.stringify(`${level}:${version}`)}: ${violations.join(', ')}`
  throw forbidden(PODS, textAt(pod, 'metadata', 'name'), why)
}

interface Subject {
  readonly spec: JsonObject
  readonly containers: readonly JsonObject[]
}

/** The problem, with a word before it, or nothing. */
type Check = (subject: Subject) => readonly [reason: string, detail: string] | undefined

function podViolations(pod: JsonObject, checks: readonly Check[]): string[] {
  const spec = objectAt(pod, 'spec') ?? {}
  const containers = [...objectsAt(spec, 'initContainers'), ...objectsAt(spec, 'containers'), ...objectsAt(spec, 'ephemeralContainers')]
  return checks.flatMap((check) => {
    const found = check({ spec, containers })
    return found ? [`${found[0]} (${found[1]})`] : []
  })
}

const DEFAULT_CAPABILITIES = [
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT',
].flatMap((names) => names.split(' '))
const SAFE_SYSCTLS = [
  'kernel.shm_rmid_forced',
  ...[
    'ip_local_port_range tcp_syncookies ping_group_range ip_unprivileged_port_start ip_local_reserved_ports tcp_keepalive_time',
    'tcp_fin_timeout tcp_keepalive_intvl tcp_keepalive_probes tcp_rmem tcp_wmem',
  ].flatMap((names) => names.split(' ').map((name) => `net.ipv4.${name}`)),
]
const SAFE_SELINUX = ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']
const SAFE_PROFILES = ['RuntimeDefault', 'Localhost']
const SAFE_VOLUMES = 'configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret'.split(' ')

const appArmor: Check = (subject) => {
  const { setters, values } = setBy(subject, (context) => profileOf(context, 'appArmorProfile'))
  const reason = values.length === 1 ? 'forbidden AppArmor profile' : 'forbidden AppArmor profiles'
  return setters.length > 0 ? [reason, `${setters.join(' and ')} must not set AppArmor profile type to ${quoted(values)}`] : undefined
}

const seccomp: Check = (subject) => {
  const { setters, values } = setBy(subject, (context) => profileOf(context, 'seccompProfile'))
  if (setters.length === 0) return undefined
  return ['seccompProfile', `${setters.join(' and ')} must not set securityContext.seccompProfile.type to ${quoted(values)}`]
}

const strictSeccomp: Check = (subject) => {
  const wrong = seccomp(subject)
  if (wrong !== undefined || givenText(subject.spec, 'securityContext', 'seccompProfile', 'type') !== undefined) return wrong
  const bad = subject.containers.filter((one) => at(one, 'securityContext', 'seccompProfile') === undefined)
  if (bad.length === 0) return undefined
  const detail = `pod or ${named(bad)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`
  return ['seccompProfile', detail]
}

const capabilities: Check = ({ containers }) => {
  const { bad, values } = offenders(containers, (one) => addedBeyond(one, DEFAULT_CAPABILITIES))
  if (bad.length === 0) return undefined
  return ['non-default capabilities', `${named(bad)} must not include ${quoted(values)} in securityContext.capabilities.add`]
}

const strictCapabilities: Check = ({ containers }) => {
  const keeping = containers.filter((one) => !textsAt(one, 'securityContext', 'capabilities', 'drop').includes('ALL'))
  const { bad, values } = offenders(containers, (one) => addedBeyond(one, ['NET_BIND_SERVICE']))
  const details = [
    ...(keeping.length > 0 ? [`${named(keeping)} must set securityContext.capabilities.drop=["ALL"]`] : []),
    ...(bad.length > 0 ? [`${named(bad)} must not include ${quoted(values)} in securityContext.capabilities.add`] : []),
  ]
  return details.length > 0 ? ['unrestricted capabilities', details.join('; ')] : undefined
}

const hostNamespaces: Check = ({ spec }) => {
  const used = ['hostNetwork', 'hostPID', 'hostIPC'].filter((name) => flagAt(spec, name) === true)
  return used.length > 0 ? ['host namespaces', used.map((name) => `${name}=true`).join(', ')] : undefined
}

const hostPaths: Check = ({ spec }) => {
  const bad = objectsAt(spec, 'volumes').filter((volume) => volume['hostPath'] !== undefined)
  return bad.length > 0 ? ['hostPath volumes', named(bad, 'volume')] : undefined
}

const hostPorts: Check = ({ containers }) => {
  const { bad, values } = offenders(containers, (one) =>
    objectsAt(one, 'ports')
      .map((port) => numberAt(port, 'hostPort') ?? 0)
      .filter((port) => port !== 0)
      .map(String),
  )
  if (bad.length === 0) return undefined
  return ['hostPort', `${named(bad)} ${bad.length === 1 ? 'uses' : 'use'} ${plural('hostPort', values.length)} ${values.join(', ')}`]
}

const hostProbes: Check = ({ containers }) => {
  const { bad, values } = offenders(containers, (one) => {
    const handlers = [
      ...['livenessProbe', 'readinessProbe', 'startupProbe'].map((name) => [name]),
      ['lifecycle', 'postStart'],
      ['lifecycle', 'preStop'],
    ]
    return handlers
      .flatMap((path) => ['httpGet', 'tcpSocket'].map((kind) => textAt(one, ...path, kind, 'host')))
      .filter((host) => host !== '')
  })
  if (bad.length === 0) return undefined
  const reason = 'probe or lifecycle host'
  return [reason, `${named(bad)} ${bad.length === 1 ? 'uses' : 'use'} ${plural(reason, values.length)} ${quoted(values)}`]
}

const privileged: Check = ({ containers }) => {
  const bad = containers.filter((one) => flagAt(one, 'securityContext', 'privileged') === true)
  return bad.length > 0 ? ['privileged', `${named(bad)} must not set securityContext.privileged=true`] : undefined
}

const procMounts: Check = ({ containers }) => {
  const { bad, values } = offenders(containers, (one) => {
    const mount = givenText(one, 'securityContext', 'procMount')
    return mount === undefined || mount === 'Default' ? [] : [mount]
  })
  return bad.length > 0 ? ['procMount', `${named(bad)} must not set securityContext.procMount to ${quoted(values)}`] : undefined
}

const seLinux: Check = (subject) => {
  const { setters, values } = setBy(subject, (context) => {
    const options = objectAt(context, 'seLinuxOptions')
    if (options === undefined) return []
    const type = textAt(options, 'type')
    return [
      ...(SAFE_SELINUX.includes(type) ? [] : [`type "${type}"`]),
      ...['user', 'role'].filter((name) => textAt(options, name) !== '').map((name) => `${name} may not be set`),
    ]
  })
  if (setters.length === 0) return undefined
  return ['seLinuxOptions', `${setters.join(' and ')} set forbidden securityContext.seLinuxOptions: ${values.join('; ')}`]
}

const sysctls: Check = ({ spec }) => {
  const names = objectsAt(spec, 'securityContext', 'sysctls').map((sysctl) => textAt(sysctl, 'name'))
  const bad = names.filter((name) => !SAFE_SYSCTLS.includes(name))
  return bad.length > 0 ? ['forbidden sysctls', bad.join(', ')] : undefined
}

const escalation: Check = ({ containers }) => {
  const bad = containers.filter((one) => flagAt(one, 'securityContext', 'allowPrivilegeEscalation') !== false)
  return bad.length > 0
    ? ['allowPrivilegeEscalation != false', `${named(bad)} must set securityContext.allowPrivilegeEscalation=false`]
    : undefined
}

const volumeTypes: Check = ({ spec }) => {
  const { bad, values } = offenders(objectsAt(spec, 'volumes'), (volume) => {
    const types = Object.keys(volume).filter((name) => name !== 'name')
    return types.some((type) => SAFE_VOLUMES.includes(type)) ? [] : types
  })
  if (bad.length === 0) return undefined
  const kinds = `${plural('restricted volume type', values.length)} ${quoted(values)}`
  return ['restricted volume types', `${named(bad, 'volume')} ${bad.length === 1 ? 'uses' : 'use'} ${kinds}`]
}

const nonRoot: Check = (subject) => {
  const reason = 'runAsNonRoot != true'
  const { setters } = setBy(subject, (context) => (flagAt(context, 'runAsNonRoot') === false ? ['false'] : []))
  if (setters.length > 0) return [reason, `${setters.join(' and ')} must not set securityContext.runAsNonRoot=false`]
  if (flagAt(subject.spec, 'securityContext', 'runAsNonRoot') === true) return undefined
  const bad = subject.containers.filter((one) => flagAt(one, 'securityContext', 'runAsNonRoot') !== true)
  return bad.length > 0 ? [reason, `pod or ${named(bad)} must set securityContext.runAsNonRoot=true`] : undefined
}

const rootUser: Check = (subject) => {
  const { setters } = setBy(subject, (context) => (numberAt(context, 'runAsUser') === 0 ? ['0'] : []))
  return setters.length > 0 ? ['runAsUser=0', `${setters.join(' and ')} must not set runAsUser=0`] : undefined
}

const BASELINE: readonly Check[] = [
  appArmor,
  capabilities,
  hostNamespaces,
  hostPaths,
  hostPorts,
  hostProbes,
  privileged,
  procMounts,
  seLinux,
  seccomp,
  sysctls,
]
/** Some checks take the place of a looser one. */
const RESTRICTED: readonly Check[] = [
  ...BASELINE.filter((check) => check !== capabilities && check !== hostPaths && check !== seccomp),
  escalation,
  strictCapabilities,
  volumeTypes,
  nonRoot,
  rootUser,
  strictSeccomp,
]

/** Parts of a pod, the pod itself included, with wrong values in a security context, and these values. */
function setBy({ spec, containers }: Subject, wrong: (context: JsonObject) => readonly string[]): { setters: string[]; values: string[] } {
  const own = wrong(objectAt(spec, 'securityContext') ?? {})
  const { bad, values } = offenders(containers, (one) => wrong(objectAt(one, 'securityContext') ?? {}))
  const setters = [...(own.length > 0 ? ['pod'] : []), ...(bad.length > 0 ? [named(bad)] : [])]
  return { setters, values: [...new Set([...own, ...values])].toSorted() }
}

function offenders(items: readonly JsonObject[], wrong: (item: JsonObject) => readonly string[]): { bad: JsonObject[]; values: string[] } {
  const bad = items.filter((item) => wrong(item).length > 0)
  return { bad, values: [...new Set(bad.flatMap(wrong))].toSorted() }
}

function profileOf(context: JsonObject, name: string): string[] {
  const type = givenText(context, name, 'type')
  return type === undefined || SAFE_PROFILES.includes(type) ? [] : [type]
}

function addedBeyond(container: JsonObject, allowed: readonly string[]): string[] {
  return textsAt(container, 'securityContext', 'capabilities', 'add').filter((name) => !allowed.includes(name))
}

function named(items: readonly JsonObject[], word = 'container'): string {
  return `${plural(word, items.length)} ${quoted(items.map((item) => textAt(item, 'name')))}`
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ')
}

function plural(word: string, count: number): string {
  return count === 1 ? word : `${word}s`
}
