import { type CaBundle, parseCaBundle } from '@thv/http/outbound/ca-bundle'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { MemberBackend, MemberProblem, ResolvedMember, SecretKey } from '@thv/vmcpconfig/discovery/member-backend'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Env } from './forwarded-headers.ts'
import { resolveBackend } from './resolve-backend.ts'
import type { ResolvedBackend } from './resolved-backend.ts'

/** A member of the group that is no backend, or lacks a part of its authentication. */
export interface LeftOut extends MemberProblem {
  readonly kind: string
  readonly name: string
}

export interface Discovered {
  readonly backends: readonly ResolvedBackend[]
  readonly leftOut: readonly LeftOut[]
  readonly warnings: readonly LeftOut[]
  /** Names of backends whose resources say that they serve. Empty where nothing says so. */
  readonly ready: ReadonlySet<string>
}

/** Values of one key; `unknown` while it has not been read. */
export interface MemberValues {
  secret(key: SecretKey): string | undefined | 'unknown'
  configMap(key: SecretKey): string | undefined | 'unknown'
}

export interface DiscoverOptions {
  readonly config: VmcpConfig
  readonly env: Env
  readonly values: MemberValues
}

/** Members of the group as backends. One that cannot be called as it asks for is left out: it never runs with less protection. Pure. */
export function discoveredBackends(members: readonly ResolvedMember[], options: DiscoverOptions): Discovered {
  const backends: ResolvedBackend[] = []
  const leftOut: LeftOut[] = []
  const warnings: LeftOut[] = []
  const ready = new Set<string>()
  for (const found of members) {
    if (!found.ok) {
      leftOut.push({ kind: found.kind, name: found.name, ...found.problem })
      continue
    }
    const { kind, backend, warning, isReady } = found.member
    const resolved = resolveMember(found.member, options)
    if ('reason' in resolved) leftOut.push({ kind, name: backend.name, ...resolved })
    else backends.push(resolved)
    if (isReady) ready.add(backend.name)
    if (!('reason' in resolved)) warnings.push(...shadowed(resolved, options.config).map((problem) => ({ kind, ...problem })))
    const isSettled = Object.hasOwn(options.config.outgoingAuth.backends, backend.name)
    if (warning !== undefined && !isSettled && !('reason' in resolved)) warnings.push({ kind, name: backend.name, ...warning })
  }
  return { backends, leftOut, warnings, ready }
}

/** Passed headers that the backend has of its own: those win. */
export function shadowed({ name, headers }: ResolvedBackend, { passthroughHeaders }: VmcpConfig): readonly Omit<LeftOut, 'kind'>[] {
  const lost = passthroughHeaders.map((header) => header.toLowerCase()).filter((header) => Object.hasOwn(headers, header))
  if (lost.length === 0) return []
  const message = `its own headers win over passthroughHeaders: ${[...new Set(lost)].toSorted().join(', ')}`
  return [{ name, reason: 'HeaderNotPassed', message }]
}

function resolveMember(member: MemberBackend, { config, env, values }: DiscoverOptions): ResolvedBackend | MemberProblem {
  const { backend, auth: ownAuth, authConfigRef, headers, secrets, caBundle } = member
  const own: Record<string, string> = headers === undefined ? {} : { [headers.variable]: headers.manifest }
  for (const { name, secret } of secrets) {
    const value = values.secret(secret)
    if (value === undefined) return { reason: 'AuthUnavailable', message: `Secret ${secret.name} has no key ${secret.key}` }
    if (value === 'unknown') return { reason: 'NotReady', message: `Secret ${secret.name} has not been read yet` }
    own[name] = value
  }
  const ca = caBundle && bundleOf(caBundle, values)
  if (ca !== undefined && 'reason' in ca) return ca
  try {
    return resolveBackend({ backend, ownAuth, authConfigRef, ca, env: { ...env, ...own } }, config)
  } catch (error) {
    if (isThvError(error, 'vmcp_config_invalid')) return { reason: 'Invalid', message: errorMessage(error) }
    throw error
  }
}

function bundleOf(ref: NonNullable<MemberBackend['caBundle']>, values: MemberValues): CaBundle | MemberProblem | undefined {
  const { name, key, optional } = ref
  const pem = values.configMap(ref)
  if (pem === 'unknown') return { reason: 'NotReady', message: `ConfigMap ${name} has not been read yet` }
  if (pem === undefined) return optional ? undefined : { reason: 'Invalid', message: `ConfigMap ${name} has no key ${key}` }
  try {
    return parseCaBundle(pem, { name: `${name}/${key}` })
  } catch (error) {
    if (isThvError(error, 'ca_bundle_invalid')) return { reason: 'Invalid', message: error.message }
    throw error
  }
}
