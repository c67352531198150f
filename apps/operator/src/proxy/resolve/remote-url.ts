import { vetUrl } from '@thv/http/outbound/address-policy'
import { MCPRemoteProxyCondition, MCPRemoteProxyReason } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import { blocked } from '../../deployment/contribution.ts'
import type { RemotePolicySettings } from '../../operator-settings.ts'
import { contributes, type Resolved } from '../contribution.ts'

export interface RemoteUrlRules {
  readonly denyPrivate: boolean
  /** The exception to `denyPrivate`. */
  readonly allowPrivate: boolean
  readonly allowLoopback: boolean
  readonly blockedAddresses: readonly string[]
  readonly insecureAllowHTTP: boolean
  /** Names below it are inside the cluster, so private. */
  readonly clusterDomain?: string
}

/** Says why the URL must not be called, or nothing. Textual, without DNS: what the name resolves to is checked with each connection. */
export function vetRemoteUrl(url: string, rules: RemoteUrlRules): string | undefined {
  // The URL parser drops line breaks, and spaces at the ends.
  if (/[\s\0]/.test(url)) return 'the URL contains white space'
  const { denyPrivate, allowPrivate, allowLoopback, blockedAddresses, insecureAllowHTTP, clusterDomain } = rules
  const verdict = vetUrl(url, { denyPrivate, allowPrivate, allowLoopback, blockedAddresses })
  if (!verdict.ok) return `${verdict.message}${HINTS[verdict.problem] ?? ''}`
  const { protocol, hostname, hash } = new URL(url)
  if (hash !== '') return 'the URL has a fragment (#…), which is never sent: remove it'
  if (protocol === 'http:' && !insecureAllowHTTP) return 'the URL must begin with https://, or spec.insecureAllowHTTP must be true'
  const host = hostname.toLowerCase().replace(/\.$/, '')
  const isInside = clusterDomain !== undefined && clusterDomain !== '' && (host === clusterDomain || host.endsWith(`.${clusterDomain}`))
  if (isInside && denyPrivate && !allowPrivate)
    return `${host} is inside the cluster, and private addresses are not allowed${HINTS['private_blocked']}`
  return undefined
}

const HINTS: Readonly<Record<string, string>> = {
  private_blocked: ': set spec.allowPrivateEndpoint to true if it is meant',
  loopback_blocked: ': start the operator with --allow-loopback-remotes (chart value operator.remotes.allowLoopback) to allow it',
}

export interface RemoteUrlArgs {
  readonly remoteUrl: string
  readonly allowPrivateEndpoint: boolean
  readonly remotes: RemotePolicySettings
  readonly clusterDomain?: string
}

/** Of MCPRemoteProxy. Plain http is allowed there: the proxy may stand in front of a server in the same cluster. */
export function resolveRemoteUrl({ remoteUrl, allowPrivateEndpoint, remotes, clusterDomain }: RemoteUrlArgs): Resolved {
  const { denyPrivate, allowLoopback, blockedAddresses } = remotes
  const rules = { denyPrivate, allowPrivate: allowPrivateEndpoint, allowLoopback, blockedAddresses, insecureAllowHTTP: true }
  const problem = vetRemoteUrl(remoteUrl, clusterDomain === undefined ? rules : { ...rules, clusterDomain })
  if (problem !== undefined) {
    const message = `spec.remoteUrl cannot be used: ${problem}`
    return blocked({ condition: MCPRemoteProxyCondition.ConfigurationValid, reason: MCPRemoteProxyReason.RemoteURLInvalid, message })
  }
  return contributes({
    runConfig: {
      remote_url: remoteUrl,
      remote_policy: { deny_private: denyPrivate, allow_private: allowPrivateEndpoint, allow_loopback: allowLoopback },
    },
  })
}
