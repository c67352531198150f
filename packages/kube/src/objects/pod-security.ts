import type { Container, PodSpec } from './builtin-kinds.ts'

export type Platform = 'kubernetes' | 'openshift'

type Context = Readonly<Record<string, unknown>>

const USER = 1000
const RUNTIME_DEFAULT = { type: 'RuntimeDefault' }
/** OpenShift gives each namespace its own range and refuses others, so there no user id may be chosen. */
const CHOSEN_BY_OPENSHIFT = ['runAsUser', 'runAsGroup', 'fsGroup']

/**
 * The restricted profile of the Pod Security Standards, for the pod and every container in it, field by field: what somebody has set is
 * kept. What is set for the pod holds for its containers too, as it would without us.
 */
export function withSecurityContexts(spec: PodSpec, platform: Platform): PodSpec {
  const podContext = onPlatform({ ...POD_DEFAULTS, ...asContext(spec['securityContext']) }, platform)
  const secure = (container: Container): Container => ({
    ...container,
    securityContext: containerContext(asContext(container['securityContext']), podContext, platform),
  })
  return {
    ...spec,
    securityContext: podContext,
    containers: spec.containers.map(secure),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(secure) }),
  }
}

const POD_DEFAULTS: Context = { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, fsGroup: USER, seccompProfile: RUNTIME_DEFAULT }

function containerContext(own: Context, pod: Context, platform: Platform): Context {
  const { runAsNonRoot, runAsUser, runAsGroup, seccompProfile } = pod
  const filled: Context = {
    privileged: false,
    readOnlyRootFilesystem: true,
    ...(mayDenyEscalation(own) && { allowPrivilegeEscalation: false }),
    ...present({ runAsNonRoot, runAsUser, runAsGroup, seccompProfile }),
    ...own,
    capabilities: { drop: ['ALL'], ...asContext(own['capabilities']) },
  }
  return onPlatform(filled, platform)
}

/** The API server refuses to deny escalation to a container that is privileged or has CAP_SYS_ADMIN. */
function mayDenyEscalation(own: Context): boolean {
  const added = asContext(own['capabilities'])['add']
  const isAdmin = Array.isArray(added) && added.some((name) => name === 'SYS_ADMIN' || name === 'CAP_SYS_ADMIN')
  return own['privileged'] !== true && !isAdmin
}

function onPlatform(context: Context, platform: Platform): Context {
  if (platform === 'kubernetes') return context
  return Object.fromEntries(Object.entries(context).filter(([field]) => !CHOSEN_BY_OPENSHIFT.includes(field)))
}

function present(context: Context): Context {
  return Object.fromEntries(Object.entries(context).filter(([, value]) => value !== undefined))
}

/** Null stands for a field that is not set, as Go writes it. */
function asContext(value: unknown): Context {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== undefined))
}
