import type { ConditionUpdate } from '@thv/kube'
import { MCPServerEntryCondition, MCPServerEntryReason } from '@thv/resources/kinds/mcp-server-entry/constants'
import { type CanonicalMCPServerEntrySpec, normaliseMcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/normalise'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import type { Problem } from '@thv/resources/schema/normalize'
import type { OperatorSettings } from '../../operator-settings.ts'
import { parseCaBundle } from '../../proxy/resolve/ca-bundle.ts'
import { effectOf } from '../../proxy/resolve/external-auth.ts'
import { vetRemoteUrl } from '../../proxy/resolve/remote-url.ts'
import { judgeAuthConfig } from '../../references/judge-auth-config.ts'
import type { Lookup } from '../../references/lookup.ts'
import { missingSecretKey } from '../../references/secret-key.ts'

export interface EntryChecks {
  /** One per aspect that the entry has, failed or not: nothing ends the others. */
  readonly conditions: readonly ConditionUpdate[]
  /** Problems of the spec that belong to none of them. */
  readonly problems: readonly string[]
}

export interface EntryContext {
  readonly lookup: Lookup
  readonly settings: Pick<OperatorSettings, 'remotes' | 'clusterDomain' | 'serviceUrls'>
  readonly now: number
}

interface Checked {
  readonly spec: CanonicalMCPServerEntrySpec
  /** Takes the problems of a field out of the list and joins them. */
  readonly problemsOf: (field: string) => string | undefined
  readonly context: EntryContext
}

/** Checks the entry and what it names. Never the remote server: its clients find out whether it answers. Pure. */
export function checkEntry(entry: Pick<MCPServerEntry, 'spec'>, context: EntryContext): EntryChecks {
  const { spec, problems } = normaliseMcpServerEntry(entry)
  const rest = new Set<Problem>(problems)
  const checked: Checked = {
    spec,
    context,
    problemsOf(field) {
      const own = problems.filter((problem) => problem.field.startsWith(field))
      for (const problem of own) rest.delete(problem)
      return own.length === 0 ? undefined : own.map(({ message }) => message).join('; ')
    },
  }
  const conditions = [
    checkRemoteUrl(checked),
    checkGroup(checked),
    checkExternalAuth(checked),
    checkCaBundle(checked),
    ...checkHeaderSecrets(checked),
  ]
  return { conditions, problems: [...rest].map(({ message }) => message) }
}

function checkRemoteUrl({ spec, problemsOf, context: { settings } }: Checked): ConditionUpdate {
  const type = MCPServerEntryCondition.RemoteURLValidated
  const { denyPrivate, allowLoopback, blockedAddresses } = settings.remotes
  const problem =
    problemsOf('spec.remoteUrl') ??
    vetRemoteUrl(spec.remoteUrl ?? '', {
      denyPrivate,
      // Pods of the local platform are processes of this machine, and so are servers beside it.
      allowLoopback: allowLoopback || settings.serviceUrls === 'address',
      blockedAddresses,
      clusterDomain: settings.clusterDomain,
      allowPrivate: spec.allowPrivateEndpoint,
      insecureAllowHTTP: spec.insecureAllowHTTP,
    })
  if (problem !== undefined) return no(type, MCPServerEntryReason.RemoteURLInvalid, problem)
  return yes(type, MCPServerEntryReason.RemoteURLValid, 'the URL may be called')
}

function checkGroup({ spec, problemsOf, context: { lookup } }: Checked): ConditionUpdate {
  const type = MCPServerEntryCondition.GroupRefValidated
  const problem = problemsOf('spec.groupRef')
  const name = spec.groupRef?.name
  if (problem !== undefined || name === undefined) {
    return no(type, MCPServerEntryReason.GroupRefNotFound, problem ?? 'spec.groupRef must name an MCPGroup')
  }
  const group = lookup.group(name)
  if (group === undefined || group.metadata.deletionTimestamp !== undefined) {
    const message = `spec.groupRef names MCPGroup ${name}, which does not exist in this namespace: create it or correct the name`
    return no(type, MCPServerEntryReason.GroupRefNotFound, message)
  }
  if (group.status?.phase !== 'Ready') {
    return no(type, MCPServerEntryReason.GroupRefNotReady, `MCPGroup ${name} is not ready yet: see its status if this stays`)
  }
  return yes(type, MCPServerEntryReason.GroupRefIsValid, `the entry belongs to MCPGroup ${name}`)
}

function checkExternalAuth({ spec, context: { lookup } }: Checked): ConditionUpdate {
  const type = MCPServerEntryCondition.ExternalAuthConfigValidated
  const name = spec.externalAuthConfigRef?.name
  if (name === undefined) return yes(type, MCPServerEntryReason.AuthConfigNotConfigured, 'requests carry no credentials')
  const config = lookup.externalAuthConfig(name)
  if (config === undefined) {
    const message = `spec.externalAuthConfigRef names MCPExternalAuthConfig ${name}, which does not exist in this namespace: create it or correct the name`
    return no(type, MCPServerEntryReason.AuthConfigNotFound, message)
  }
  const { spec: auth, valid } = judgeAuthConfig(config, lookup)
  if ((auth.embeddedAuthServer?.upstreamProviders.length ?? 0) > 1) {
    return no(
      type,
      MCPServerEntryReason.ExternalAuthConfigMultiUpstream,
      `MCPExternalAuthConfig ${name} has several upstream providers, and an entry has no proxy that users could log in to: use authServerConfig of the VirtualMCPServer, and upstreamInject here`,
    )
  }
  const effect = effectOf(auth, 'MCPServerEntry')
  if (effect.effect === 'rejected') {
    const message = `MCPExternalAuthConfig ${name} of type ${auth.type} cannot be used by an MCPServerEntry: ${effect.note}`
    return no(type, MCPServerEntryReason.AuthConfigTypeNotSupported, message)
  }
  if (valid.status !== 'True') {
    return no(type, MCPServerEntryReason.AuthConfigInvalid, `MCPExternalAuthConfig ${name} is not valid: ${valid.message}`)
  }
  return yes(type, MCPServerEntryReason.AuthConfigValid, `MCPExternalAuthConfig ${name} of type ${auth.type} is used`)
}

function checkCaBundle({ spec, problemsOf, context: { lookup, now } }: Checked): ConditionUpdate {
  const type = MCPServerEntryCondition.CABundleRefValidated
  const problem = problemsOf('spec.caBundleRef')
  if (problem !== undefined) return no(type, MCPServerEntryReason.CABundleRefInvalid, problem)
  if (!spec.caBundleRef) {
    return yes(type, MCPServerEntryReason.CABundleRefNotConfigured, 'only the authorities of the system are trusted')
  }
  const { name, key, optional } = spec.caBundleRef.configMapRef
  const what = `key ${key} of ConfigMap ${name}`
  const pem = lookup.configMap(name)?.data[key]
  if (pem === undefined) {
    if (optional) {
      const message = `there is no ${what}, which is allowed: only the authorities of the system are trusted`
      return yes(type, MCPServerEntryReason.CABundleRefNotConfigured, message)
    }
    const message = `spec.caBundleRef names ${what}, which does not exist: create it with the certificates in PEM form`
    return no(type, MCPServerEntryReason.CABundleRefNotFound, message)
  }
  const bundle = parseCaBundle(pem, now)
  if (bundle.problem !== undefined) {
    return no(type, MCPServerEntryReason.CABundleRefInvalid, `spec.caBundleRef: ${what} is not a CA bundle: ${bundle.problem}`)
  }
  const count = `${what} holds ${bundle.certificates} certificate${bundle.certificates === 1 ? '' : 's'}`
  return yes(type, MCPServerEntryReason.CABundleRefValid, [count, ...bundle.warnings].join('; '))
}

/** Absent when no header comes from a Secret. */
function checkHeaderSecrets({ spec, context: { lookup } }: Checked): ConditionUpdate[] {
  const type = MCPServerEntryCondition.HeaderSecretRefsValidated
  const headers = spec.headerForward.addHeadersFromSecret
  if (headers.length === 0) return []
  const missing = headers.flatMap(
    ({ headerName, valueSecretRef }) =>
      missingSecretKey(lookup, valueSecretRef, `spec.headerForward.addHeadersFromSecret[${headerName}].valueSecretRef`) ?? [],
  )
  if (missing.length > 0) return [no(type, MCPServerEntryReason.HeaderSecretNotFound, missing.join('; '))]
  return [yes(type, MCPServerEntryReason.HeaderSecretsValid, 'every header finds its value')]
}

function yes(type: string, reason: string, message: string): ConditionUpdate {
  return { type, status: 'True', reason, message }
}

function no(type: string, reason: string, message: string): ConditionUpdate {
  return { type, status: 'False', reason, message }
}
