import { createHash } from 'node:crypto'
import { authVariable } from '@thv/vmcpconfig/discovery/member-auth'
import type { MemberBackend, MemberProblem } from '@thv/vmcpconfig/discovery/member-backend'
import { headerVariable, resolveMembers } from '@thv/vmcpconfig/discovery/resolve-member'
import type { BackendAuthConfig, BackendConfig, IncomingAuthConfig } from '@thv/vmcpconfig/vmcp-config'
import { type Contribution, secretVariable } from '../../../deployment/contribution.ts'
import { mountCaBundle } from '../../../proxy/resolve/ca-bundle.ts'
import type { Lookup } from '../../../references/lookup.ts'
import { missingSecretKey } from '../../../references/secret-key.ts'
import type { GroupMembers } from '../objects/group-members.ts'

/** One member as the file lists it. */
export interface Backend {
  readonly kind: MemberBackend['kind']
  readonly config: BackendConfig
  /** How it is called unless the spec says otherwise; undefined: by the default. */
  readonly auth: BackendAuthConfig | undefined
  /** The MCPExternalAuthConfig that this comes from. */
  readonly authConfig: string | undefined
  /** Authentication that was left out, and why. */
  readonly warning: MemberProblem | undefined
  readonly contribution: Contribution
}

export interface BackendList {
  /** Sorted by name. */
  readonly backends: readonly Backend[]
  /** Members that are not called, with the reason. */
  readonly leftOut: readonly { readonly name: string; readonly why: string; readonly isAuth: boolean }[]
}

interface Deps {
  readonly group: string
  readonly namespace: string
  readonly clusterDomain: string
  readonly incoming: Pick<IncomingAuthConfig, 'oidc'>
  /** Backends whose authentication the spec names: their own is not used. */
  readonly overridden: ReadonlySet<string>
  readonly lookup: Lookup
  readonly now: number
}

/** The members of the group that can be called, by the table that discovering servers use, too. Pure. */
export function backendsOf(members: GroupMembers, deps: Deps): BackendList {
  const { lookup } = deps
  const resolved = resolveMembers(
    { MCPServer: members.servers, MCPRemoteProxy: members.remoteProxies, MCPServerEntry: members.entries },
    { ...deps, externalAuthConfig: (name) => lookup.externalAuthConfig(name) },
  )
  const backends: Backend[] = []
  const leftOut: BackendList['leftOut'][number][] = []
  const taken = new Map<string, Claim>()
  for (const found of resolved) {
    const made = found.ok ? ownVariables(backendOf(found.member, deps), taken) : undefined
    if (made !== undefined && 'config' in made) backends.push(made)
    else if (made !== undefined && found.ok) leftOut.push({ name: found.member.backend.name, why: made.why, isAuth: made.isAuth })
    else if (!found.ok) {
      const { reason, message } = found.problem
      leftOut.push({ name: found.name, why: `${found.kind} ${found.name}: ${message}`, isAuth: AUTH_REASONS.has(reason) })
    }
  }
  return { backends, leftOut }
}

interface Claim {
  readonly owner: string
  readonly value: string
}

type Made = Backend | { readonly why: string; readonly isAuth: boolean }

/** Different names can lead to one variable (`a.b` and `a--b`): a backend would get the secret of another. The first one keeps it. */
function ownVariables(made: Made, taken: Map<string, Claim>): Made {
  if (!('config' in made)) return made
  const { config, contribution } = made
  const { name: owner } = config
  const env = (contribution.env ?? []).map((variable): [string, Claim] => [variable.name, { owner, value: JSON.stringify(variable) }])
  // The virtual server looks for forwarded headers of every backend.
  const headers = headerVariable(owner)
  const claims = new Map<string, Claim>([[headers, { owner, value: '' }], ...env])
  for (const [variable, { value }] of claims) {
    const other = taken.get(variable)
    const isShared = other?.value === value && (variable !== headers || value === '')
    if (other !== undefined && !isShared)
      return { why: `${made.kind} ${owner}: ${variable} is for ${other.owner} already: rename one of them`, isAuth: true }
  }
  for (const [variable, claim] of claims) taken.set(variable, claim)
  return made
}

const AUTH_REASONS: ReadonlySet<MemberProblem['reason']> = new Set(['AuthUnavailable', 'Unsupported'])

/** A variable whose Secret is missing would keep the pods from starting, so the member waits. */
function backendOf(member: MemberBackend, { lookup, now, overridden }: Deps): Backend | { readonly why: string; readonly isAuth: boolean } {
  const { kind, backend, auth, authConfigRef, headers, caBundle, warning } = member
  const { name } = backend
  const secrets = member.secrets.filter((variable) => !overridden.has(name) || variable.name !== authVariable(name))
  const missing = secrets.flatMap(({ secret }) => missingSecretKey(lookup, secret, `${kind} ${name}`) ?? [])
  if (missing.length > 0) return { why: missing.join('; '), isAuth: true }
  const ca = caBundle === undefined ? {} : mountedBundle(name, caBundle, { lookup, now })
  if ('why' in ca) return { why: ca.why, isAuth: false }
  const { path, volumes = [], volumeMounts = [] } = ca
  return {
    kind,
    config: { ...backend, ...(path !== undefined && { caBundlePath: path }) },
    auth,
    authConfig: authConfigRef,
    warning,
    contribution: {
      env: [
        ...secrets.map((variable) => secretVariable(variable.name, variable.secret)),
        ...(headers === undefined ? [] : [{ name: headers.variable, value: headers.manifest }]),
      ],
      secrets: secrets.map(({ secret }) => secret.name),
      volumes,
      volumeMounts,
    },
  }
}

const CA_FOLDER = '/etc/toolhive/ca-bundles'
const CA_FILE = 'ca.crt'

type Bundle = (Contribution & { readonly path?: string }) | { readonly why: string }

function mountedBundle(
  name: string,
  ref: NonNullable<MemberBackend['caBundle']>,
  { lookup, now }: { lookup: Pick<Lookup, 'configMap'>; now: number },
): Bundle {
  const volumeName = caVolumeName(name)
  const folder = `${CA_FOLDER}/${name}`
  const field = `spec.caBundleRef of MCPServerEntry ${name}`
  const mounted = mountCaBundle({ ref: { configMapRef: ref }, field, volumeName, folder, lookup, now })
  if (!mounted.ok) return { why: mounted.blocker.message }
  const { file } = mounted
  if (file === undefined) return {}
  return {
    path: `${folder}/${CA_FILE}`,
    volumes: [{ name: volumeName, configMap: { name: ref.name, items: [{ key: ref.key, path: CA_FILE }] } }],
    volumeMounts: [{ name: volumeName, mountPath: folder, readOnly: true }],
  }
}

const MAX_VOLUME_NAME = 63

/** Names of entries may be longer than those of volumes, and have dots. */
export function caVolumeName(entry: string): string {
  const full = `ca-bundle-${entry}`
  if (full.length <= MAX_VOLUME_NAME && !entry.includes('.')) return full
  const hash = createHash('sha256').update(entry).digest('hex').slice(0, 8)
  return `ca-bundle-${entry.slice(0, 44).replaceAll('.', '-').replace(/-+$/, '')}-${hash}`
}
