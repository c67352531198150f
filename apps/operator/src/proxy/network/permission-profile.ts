import { objectAt } from '@thv/kernel/json'
import type { ConditionUpdate } from '@thv/kube'
import { MCPServerCondition, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import type { CanonicalPermissionProfile } from '@thv/resources/kinds/mcp-server/normalise'
import { blocked } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'
import type { Contribution, Resolved } from '../contribution.ts'
import { isAddress } from './address.ts'
import { readProfile } from './read-profile.ts'

/** The network access of an MCP server, with defaults filled in. The names are those of the document. */
export interface PermissionProfile {
  readonly name: string
  readonly read: readonly string[]
  readonly write: readonly string[]
  readonly network: {
    readonly mode?: 'bridge' | 'none'
    readonly outbound: {
      readonly insecure_allow_all: boolean
      readonly allow_host: readonly string[]
      readonly allow_port: readonly number[]
    }
    readonly inbound: { readonly allow_host: readonly string[] }
  }
}

export interface ProfileInput {
  /** Undefined: the spec has none. */
  readonly profile: CanonicalPermissionProfile | undefined
  readonly podTemplateSpec?: Record<string, unknown> | undefined
  readonly lookup: Pick<Lookup, 'configMap'>
}

export type ResolvedProfile = Resolved & {
  /** The profile that `networkPolicy` enforces; undefined when the spec has none or it could not be resolved. */
  readonly profile?: PermissionProfile
}

/** Finds, reads and checks the profile. One that cannot be resolved blocks the workload, which would run with too many rights. */
export function resolvePermissionProfile({ profile, podTemplateSpec, lookup }: ProfileInput): ResolvedProfile {
  if (profile === undefined) return { ok: true, contribution: { runConfig: { permission_profile: asDocument(BUILTIN.network) } } }
  const found = profile.type === 'builtin' ? builtin(profile.name) : fromConfigMap(profile, lookup)
  if (!('network' in found)) return refused(found.reason, found.message)
  if (objectAt(podTemplateSpec ?? {}, 'spec')['hostNetwork'] === true) {
    return refused(
      MCPServerReason.PermissionProfileInvalid,
      'spec.permissionProfile cannot hold for pods in the network of the node: remove hostNetwork from spec.podTemplateSpec, or the profile.',
    )
  }
  const contribution: Contribution = {
    runConfig: {
      permission_profile: asDocument(found),
      permission_profile_name_or_path: profile.type === 'builtin' ? profile.name : `${profile.name}/${profile.key}`,
    },
    conditions: partial(found),
  }
  return { ok: true, contribution, profile: found }
}

const CLOSED = { insecure_allow_all: false, allow_host: [], allow_port: [] }

const BUILTIN = {
  none: { name: 'none', read: [], write: [], network: { outbound: CLOSED, inbound: { allow_host: [] } } },
  network: {
    name: 'network',
    read: [],
    write: [],
    network: { outbound: { ...CLOSED, insecure_allow_all: true }, inbound: { allow_host: [] } },
  },
} as const satisfies Record<string, PermissionProfile>

type Found = PermissionProfile | { readonly reason: string; readonly message: string }

/** The builtin profile `none`. */
export const NO_PERMISSIONS: PermissionProfile = BUILTIN.none

function builtin(name: string): Found {
  if (name === 'none' || name === 'network') return BUILTIN[name]
  const message = `There is no builtin permission profile of the name in spec.permissionProfile.name: use none or network, or type configmap.`
  return { reason: MCPServerReason.PermissionProfileNotFound, message }
}

function fromConfigMap({ name, key }: { name: string; key: string }, lookup: Pick<Lookup, 'configMap'>): Found {
  const configMap = lookup.configMap(name)
  const text = configMap?.data[key]
  if (text === undefined) {
    const missing = configMap === undefined ? `ConfigMap ${name} does not exist` : `ConfigMap ${name} has no key ${key}`
    return { reason: MCPServerReason.PermissionProfileNotFound, message: `${missing}: create it, or correct spec.permissionProfile.` }
  }
  const read = readProfile(text, key)
  if (read.ok) return read.profile
  const message = `Key ${key} of ConfigMap ${name} is not a permission profile: ${read.problems.join('; ')}.`
  return { reason: MCPServerReason.PermissionProfileInvalid, message }
}

function refused(reason: string, message: string): ResolvedProfile {
  return blocked({ condition: MCPServerCondition.ConfigurationValid, reason, message })
}

function asDocument(profile: PermissionProfile): Readonly<Record<string, unknown>> {
  return { ...profile }
}

/** Parts of the profile that a NetworkPolicy cannot express: one condition that names them all, with the most important reason. */
function partial({ read, write, network }: PermissionProfile): ConditionUpdate[] {
  const { outbound, inbound, mode } = network
  const isOpen = outbound.insecure_allow_all && mode !== 'none'
  const named = isOpen || mode === 'none' ? [] : outbound.allow_host.filter((host) => !isAddress(host))
  const findings: [string, string][] = []
  if (named.length > 0 && outbound.allow_port.length > 0) {
    findings.push([
      MCPServerReason.HostRulesNotEnforced,
      `network.outbound.allow_host names hosts, which a NetworkPolicy cannot: the ports in allow_port are open to all hosts. List addresses (such as 192.0.2.0/24) to restrict them.`,
    ])
  } else if (named.length > 0) {
    findings.push([
      MCPServerReason.HostRulesNotExpressible,
      `network.outbound.allow_host names hosts, which a NetworkPolicy cannot: nothing is open to them. List addresses, or open ports to all hosts with allow_port.`,
    ])
  }
  if (inbound.allow_host.length > 0) {
    findings.push([
      MCPServerReason.InboundRulesNotApplied,
      'network.inbound.allow_host opens nothing: clients reach the server through its proxy.',
    ])
  }
  if (read.length + write.length > 0) {
    findings.push([MCPServerReason.MountRulesNotApplied, 'read and write mount nothing: use spec.volumes or spec.podTemplateSpec.'])
  }
  const [first] = findings
  if (first === undefined) return []
  const message = findings.map(([, text]) => text).join(' ')
  return [{ type: MCPServerCondition.PermissionProfilePartial, status: 'True', reason: first[0], message }]
}
