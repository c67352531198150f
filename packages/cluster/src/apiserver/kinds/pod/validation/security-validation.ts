import { duplicate, forbidden, invalid, invalidShown, notSupported, required, tooLong } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { idProblems } from '@thv/kube-schema/values/name-checks'
import { textAt } from '../../../objects/served-kind.ts'
import { flagAt, givenText, numberAt, objectAt, objectsAt, textsAt } from './fields.ts'
import { descendingPath } from './path-checks.ts'
import { invalidAll, oneOf } from './problems.ts'

/** Of the security context of a container. */
export function securityProblems(context: JsonObject | undefined, path: string, hostUsers: boolean): FieldProblem[] {
  if (context === undefined) return []
  const problems = [...idFieldProblems(context, path, ['runAsUser', 'runAsGroup'])]
  const procMount = givenText(context, 'procMount')
  problems.push(...oneOf(`${path}.procMount`, procMount, ['Default', 'Unmasked']))
  if (hostUsers && procMount === 'Unmasked')
    problems.push(invalid(`${path}.procMount`, procMount, '`hostUsers` must be false to use `Unmasked`'))
  problems.push(...seccompProblems(objectAt(context, 'seccompProfile'), `${path}.seccompProfile`))
  if (flagAt(context, 'allowPrivilegeEscalation') === false) {
    const wrong = (what: string) => invalidShown(path, goContext(context), `cannot set \`allowPrivilegeEscalation\` to false and ${what}`)
    if (flagAt(context, 'privileged') === true) problems.push(wrong('`privileged` to true'))
    const added = textsAt(context, 'capabilities', 'add').filter((name) => name === 'CAP_SYS_ADMIN')
    problems.push(...added.map(() => wrong('`capabilities.Add` CAP_SYS_ADMIN')))
  }
  return [...problems, ...appArmorProblems(objectAt(context, 'appArmorProfile'), `${path}.appArmorProfile`)]
}

/** Of the security context of a pod; some of what the server keeps there stands in the spec itself. */
export function podSecurityProblems(spec: JsonObject, path: string): FieldProblem[] {
  const context = objectAt(spec, 'securityContext') ?? {}
  const problems = idFieldProblems(context, path, ['fsGroup', 'runAsUser', 'runAsGroup'])
  const groups = Array.isArray(context['supplementalGroups']) ? context['supplementalGroups'].map(Number) : []
  problems.push(...groups.flatMap((group, index) => invalidAll(`${path}.supplementalGroups[${index}]`, group, idProblems(group))))
  if (flagAt(spec, 'shareProcessNamespace') === true && flagAt(spec, 'hostPID') === true)
    problems.push(invalid(`${path}.shareProcessNamespace`, true, 'ShareProcessNamespace and HostPID cannot both be enabled'))
  return [
    ...problems,
    ...sysctlProblems(objectsAt(context, 'sysctls'), `${path}.sysctls`),
    ...oneOf(`${path}.fsGroupChangePolicy`, givenText(context, 'fsGroupChangePolicy'), ['Always', 'OnRootMismatch']),
    ...seccompProblems(objectAt(context, 'seccompProfile'), `${path}.seccompProfile`),
    ...appArmorProblems(objectAt(context, 'appArmorProfile'), `${path}.appArmorProfile`),
    ...oneOf(`${path}.supplementalGroupsPolicy`, givenText(context, 'supplementalGroupsPolicy'), ['Merge', 'Strict']),
    ...oneOf(`${path}.seLinuxChangePolicy`, givenText(context, 'seLinuxChangePolicy'), ['MountOption', 'Recursive']),
  ]
}

/** Fields that a pod with a user namespace cannot have. */
export function hostUserProblems(spec: JsonObject, path: string): FieldProblem[] {
  if (flagAt(spec, 'hostUsers') !== false) return []
  const fields = { hostNetwork: 'hostNetwork', hostPID: 'HostPID', hostIPC: 'HostIPC' }
  const asked = Object.entries(fields).filter(([name]) => flagAt(spec, name) === true)
  return asked.map(([, field]) => forbidden(`${path}.${field}`, 'when `hostUsers` is false'))
}

function idFieldProblems(context: JsonObject, path: string, names: readonly string[]): FieldProblem[] {
  return names.flatMap((name) => {
    const id = numberAt(context, name)
    return id === undefined ? [] : invalidAll(`${path}.${name}`, id, idProblems(id))
  })
}

const PROFILES = ['Localhost', 'RuntimeDefault', 'Unconfined']

function seccompProblems(profile: JsonObject | undefined, path: string): FieldProblem[] {
  if (profile === undefined) return []
  const type = textAt(profile, 'type')
  const local = givenText(profile, 'localhostProfile')
  const problems: FieldProblem[] = []
  if (type === '') problems.push(required(`${path}.type`, 'type is required when seccompProfile is set'))
  else if (!PROFILES.includes(type)) problems.push(notSupported(`${path}.type`, type, PROFILES))
  const field = `${path}.localhostProfile`
  if (type === 'Localhost') {
    if (local === undefined) problems.push(required(field, 'must be set when seccomp type is Localhost'))
    else problems.push(...descendingPath(local, field))
  } else if (local !== undefined) {
    const shown = JSON.stringify({ Type: type, LocalhostProfile: local })
    problems.push(invalidShown(field, shown, 'can only be set when seccomp type is Localhost'))
  }
  return problems
}

const MAX_PROFILE = 4_095

function appArmorProblems(profile: JsonObject | undefined, path: string): FieldProblem[] {
  if (profile === undefined) return []
  const type = textAt(profile, 'type')
  const local = givenText(profile, 'localhostProfile')
  const field = `${path}.localhostProfile`
  if (type === '') return [required(`${path}.type`, 'type is required when appArmorProfile is set')]
  if (!PROFILES.includes(type)) return [notSupported(`${path}.type`, type, PROFILES)]
  if (type !== 'Localhost') return local === undefined ? [] : [invalid(field, local, 'can only be set when AppArmor type is Localhost')]
  const missing = [required(field, 'must be set when AppArmor type is Localhost')]
  if (local === undefined) return missing
  if (local.trim() !== local) return [invalid(field, local, 'must not be padded with whitespace')]
  if (local === '') return missing
  return local.length > MAX_PROFILE ? [tooLong(field, MAX_PROFILE)] : []
}

const SYSCTL = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?'
const SYSCTL_NAME = new RegExp(`^${SYSCTL}$`)
const MAX_SYSCTL = 253

function sysctlProblems(sysctls: readonly JsonObject[], path: string): FieldProblem[] {
  const seen = new Set<string>()
  return sysctls.flatMap((sysctl, index) => {
    const name = textAt(sysctl, 'name')
    const field = `${path}[${index}].name`
    const again = seen.has(name)
    seen.add(name)
    if (name === '') return [required(field)]
    if (name.length > MAX_SYSCTL || !SYSCTL_NAME.test(name))
      return [invalid(field, name, `must have at most ${MAX_SYSCTL} characters and match regex ^${SYSCTL}$`)]
    return again ? [duplicate(field, name)] : []
  })
}

/** How the server shows its own form of a security context. */
function goContext(context: JsonObject): string {
  const names = [
    'capabilities privileged seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem',
    'allowPrivilegeEscalation procMount seccompProfile appArmorProfile',
  ]
    .join(' ')
    .split(' ')
  const members = names.map((name) => [capital(name), name === 'capabilities' ? goCapabilities(context) : (context[name] ?? null)])
  return JSON.stringify(Object.fromEntries(members))
}

function goCapabilities(context: JsonObject): JsonObject | null {
  const capabilities = objectAt(context, 'capabilities')
  return capabilities ? { Add: capabilities['add'] ?? null, Drop: capabilities['drop'] ?? null } : null
}

function capital(name: string): string {
  return name === 'seLinuxOptions' ? 'SELinuxOptions' : name.charAt(0).toUpperCase() + name.slice(1)
}
