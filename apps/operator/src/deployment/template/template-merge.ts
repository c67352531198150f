import { jsonEqual, objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'
import type { Container, PodSpec, PodTemplateSpec } from '@thv/kube'
import { PatchError } from '@thv/kube-schema/patch/patch-error'
import { podTemplateProblems } from './pod-template-spec.ts'
import { strategicMerge } from './strategic-merge.ts'
import { TEMPLATE_PATH, type TemplateProblem } from './template-problem.ts'

/** The container that runs the proxy. */
export const PROXY_CONTAINER = 'toolhive'

/** The container that the operator owns in a pod, and what to name in messages about it. */
export interface TemplateRole {
  readonly container: string
  /** Such as `the proxy`. */
  readonly noun: string
  /** The way to change the fixed fields, for messages. */
  readonly account: string
  readonly image: string
  readonly port: string
}

const PROXY_ROLE: TemplateRole = {
  container: PROXY_CONTAINER,
  noun: 'the proxy',
  account: 'use spec.serviceAccount',
  image: 'the operator chooses it (TOOLHIVE_RUNNER_IMAGE)',
  port: 'use spec.proxyPort',
}

export interface MergeInput {
  readonly base: PodTemplateSpec
  /** `podTemplateSpec` of the user: a strategic merge patch. */
  readonly patch: UnknownObject
  /** Fills in the security contexts. */
  readonly secure: (spec: PodSpec) => PodSpec
  /** Default: the proxy. */
  readonly role?: TemplateRole
}

export interface MergedTemplate {
  /** The base itself when there are problems. */
  readonly template: PodTemplateSpec
  readonly shadowed: readonly string[]
  readonly problems: readonly TemplateProblem[]
}

/** The proxy's pod template with the wishes of the user. What makes it the proxy of this workload stays as it is. */
export function mergeProxyTemplate({ base, patch, secure, role = PROXY_ROLE }: MergeInput): MergedTemplate {
  const refused = (problems: readonly TemplateProblem[]): MergedTemplate => ({ template: base, shadowed: [], problems })
  const wrong = podTemplateProblems(patch, { patch: true })
  if (wrong.length > 0) return refused(wrong)

  let merged: UnknownObject
  try {
    merged = strategicMerge(base, patch)
  } catch (error) {
    if (!(error instanceof PatchError)) throw error
    return refused([{ path: TEMPLATE_PATH, message: `cannot be merged: ${error.message}` }])
  }
  const { template, shadowed } = withOwnVariables(merged, base, role)
  const lost = [...lostParts(base, template, role), ...podTemplateProblems(template)]
  if (lost.length > 0) return refused(lost)
  // Types have been checked: it is a pod template.
  const checked = template as PodTemplateSpec
  const weak = weakened(checked, secure, role)
  return weak.length > 0 ? refused(weak) : { template: checked, shadowed, problems: [] }
}

/** Variables that the operator or `resourceOverrides` set win over those of the template. */
function withOwnVariables(
  merged: UnknownObject,
  base: PodTemplateSpec,
  role: TemplateRole,
): { template: UnknownObject; shadowed: string[] } {
  const own = objectsAt(proxyOf(base, role) ?? {}, 'env')
  const podSpec = objectAt(merged, 'spec')
  const proxy = proxyOf(merged, role)
  if (proxy === undefined) return { template: merged, shadowed: [] }
  const given = objectsAt(proxy, 'env')
  const isOwn = (entry: UnknownObject) => own.some(({ name }) => name === entry['name'])
  const shadowed = given.filter((entry) => own.some((ours) => ours['name'] === entry['name'] && !jsonEqual(ours, entry)))
  const env = [...own, ...given.filter((entry) => !isOwn(entry))]
  const containers = objectsAt(podSpec, 'containers').map((container) => (container === proxy ? { ...proxy, env } : container))
  return { template: { ...merged, spec: { ...podSpec, containers } }, shadowed: shadowed.map(({ name }) => String(name)) }
}

/** Fields that a user may not change, and what to use instead. */
const fixedInPod = ({ noun, account }: TemplateRole): Readonly<Record<string, string>> => ({
  serviceAccountName: account,
  automountServiceAccountToken: `${noun} does not speak to the Kubernetes API`,
  enableServiceLinks: `variables of other Services could be taken for settings of ${noun}`,
})
const fixedInContainer = ({ image }: TemplateRole): Readonly<Record<string, string>> => ({
  image,
  command: 'the operator sets it',
  args: 'the operator sets it',
})
const OPEN_TO_THE_NODE = ['hostNetwork', 'hostPID', 'hostIPC']

function lostParts(base: PodTemplateSpec, merged: UnknownObject, role: TemplateRole): TemplateProblem[] {
  const problems: TemplateProblem[] = []
  const report = (path: string, message: string) => void problems.push({ path: `${TEMPLATE_PATH}.${path}`, message })
  checkMetadata(base, merged, report)

  const [ownSpec, podSpec] = [objectAt({ ...base }, 'spec'), objectAt(merged, 'spec')]
  for (const [field, instead] of Object.entries(fixedInPod(role))) {
    if (!jsonEqual(podSpec[field], ownSpec[field])) report(`spec.${field}`, `cannot be changed: ${instead}`)
  }
  if (podSpec['serviceAccount']) report('spec.serviceAccount', `cannot be set: ${role.account}`)
  for (const field of OPEN_TO_THE_NODE) {
    if (podSpec[field] === true) report(`spec.${field}`, `cannot be true: ${role.noun} needs nothing of the node`)
  }
  const [ownVolumes, volumes] = [objectsAt(ownSpec, 'volumes'), objectsAt(podSpec, 'volumes')]
  checkKept(ownVolumes, volumes.map(withoutSize), (name) => report('spec.volumes', `must keep volume ${name} as it is`))

  const [ownProxy, proxy] = [proxyOf(base, role), proxyOf(merged, role)]
  const at = `spec.containers[name=${role.container}]`
  if (proxy === undefined || ownProxy === undefined) {
    report(at, `cannot be removed: it is ${role.noun}`)
    return problems
  }
  for (const [field, instead] of Object.entries(fixedInContainer(role))) {
    if (!jsonEqual(proxy[field], ownProxy[field])) report(`${at}.${field}`, `cannot be changed: ${instead}`)
  }
  checkKept(objectsAt(ownProxy, 'ports'), objectsAt(proxy, 'ports'), () =>
    report(`${at}.ports`, `must keep port http as it is: ${role.port}`),
  )
  checkKept(objectsAt(ownProxy, 'volumeMounts'), objectsAt(proxy, 'volumeMounts'), (name) =>
    report(`${at}.volumeMounts`, `must keep the mount of volume ${name} as it is`),
  )
  for (const path of hiddenPaths(objectsAt(ownProxy, 'volumeMounts'), objectsAt(proxy, 'volumeMounts'))) {
    report(`${at}.volumeMounts`, `must not put anything into ${path}, which the operator mounts`)
  }
  return problems
}

function checkMetadata(base: PodTemplateSpec, merged: UnknownObject, report: (path: string, message: string) => void): void {
  const metadata = objectAt(merged, 'metadata')
  for (const map of ['labels', 'annotations'] as const) {
    const given = objectAt(metadata, map)
    for (const [key, value] of Object.entries(base.metadata?.[map] ?? {})) {
      if (given[key] !== value) report(`metadata.${map}[${key}]`, 'cannot be changed: the operator sets it')
    }
  }
}

/** How large an empty folder may become, and whether it lies in memory, is for the user to say. */
function withoutSize(volume: UnknownObject): UnknownObject {
  const { emptyDir, ...rest } = volume
  return emptyDir === undefined ? volume : { ...rest, emptyDir: {} }
}

/** Items of the operator that are gone or different. */
function checkKept(own: readonly UnknownObject[], given: readonly UnknownObject[], report: (name: string) => void): void {
  for (const item of own) if (!given.some((candidate) => jsonEqual(candidate, item))) report(String(item['name']))
}

/** Folders of the operator, other than /tmp, that a mount of the user would hide a part of. */
function hiddenPaths(own: readonly UnknownObject[], given: readonly UnknownObject[]): string[] {
  const folders = own.map(({ mountPath }) => String(mountPath)).filter((path) => path !== '/tmp')
  const added = given.filter((mount) => !own.some((ours) => jsonEqual(ours, mount))).map(({ mountPath }) => `${mountPath}/`)
  return folders.filter((folder) => added.some((path) => path.replaceAll(/\/+/g, '/').startsWith(`${folder}/`)))
}

/** Fields of the restricted profile that the proxy keeps. Who it runs as may be changed, but not to root. */
const RESTRICTED = [
  'privileged',
  'allowPrivilegeEscalation',
  'runAsNonRoot',
  'readOnlyRootFilesystem',
  'capabilities',
  'seccompProfile',
  'procMount',
]

function weakened(template: PodTemplateSpec, secure: (spec: PodSpec) => PodSpec, role: TemplateRole): TemplateProblem[] {
  const spec = template.spec
  if (spec === undefined) return []
  const plain: PodSpec = { ...withoutContext(spec), containers: spec.containers.map(withoutContext) }
  const [wanted, given] = [secure(plain), secure(spec)]
  const problems: TemplateProblem[] = []
  const compare = (ours: UnknownObject, theirs: UnknownObject, at: string) => {
    const [expected, actual] = [objectAt(ours, 'securityContext'), objectAt(theirs, 'securityContext')]
    for (const field of RESTRICTED) {
      if (!jsonEqual(expected[field], actual[field])) {
        problems.push({
          path: `${at}.securityContext.${field}`,
          message: `cannot be changed: ${role.noun} runs under the restricted profile`,
        })
      }
    }
    for (const field of ['runAsUser', 'runAsGroup']) {
      if (actual[field] === 0)
        problems.push({ path: `${at}.securityContext.${field}`, message: `must not be 0: ${role.noun} does not run as root` })
    }
  }
  compare(wanted, given, `${TEMPLATE_PATH}.spec`)
  const [ownProxy, proxy] = [proxyOf({ spec: wanted }, role), proxyOf({ spec: given }, role)]
  if (ownProxy && proxy) compare(ownProxy, proxy, `${TEMPLATE_PATH}.spec.containers[name=${role.container}]`)
  return problems
}

function withoutContext<T extends PodSpec | Container>({ ...rest }: T): T {
  delete rest['securityContext']
  return rest as T
}

function proxyOf(template: UnknownObject | PodTemplateSpec, { container }: TemplateRole): UnknownObject | undefined {
  return objectsAt(objectAt({ ...template }, 'spec'), 'containers').find(({ name }) => name === container)
}
