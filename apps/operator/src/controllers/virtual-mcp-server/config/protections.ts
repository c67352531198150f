import { configHash } from '@thv/kernel/config-hash'
import type { Deployment } from '@thv/kube'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { readVmcpConfig } from '@thv/vmcpconfig/read-vmcp-config'
import { restartPart } from '@thv/vmcpconfig/restart-part'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { WorkloadAnnotation } from '../../../deployment/template/annotations.ts'

/** The current state of the cluster, as far as the plan depends on it. */
export interface LiveVirtualServer {
  /** Of the ConfigMap that we made. */
  readonly config: string | undefined
  readonly deployment: Deployment | undefined
}

/** On the pod template: pods are replaced when it changes. Everything else the virtual server takes over while it runs. */
export function restartChecksum(config: VmcpConfig): string {
  return configHash(restartPart(config))
}

/**
 * Whether the pods that run lack a protection that the spec asks for. Pods that were made for another file than the ConfigMap holds count
 * as open: an operator that ended between its two writes leaves a closing file beside open pods.
 */
export function lacksProtection({ config, deployment }: LiveVirtualServer, spec: CanonicalVirtualMCPServerSpec): boolean {
  const { incomingAuth, config: wanted } = spec
  const wantsOidc = incomingAuth?.type === 'oidc'
  const wantsPolicies = incomingAuth?.authzConfig !== undefined
  if (!wantsOidc && !wantsPolicies && !wanted.audit.enabled) return false
  const read = config === undefined ? undefined : readVmcpConfig(config)
  if (read?.ok !== true) return true
  const running = read.config
  const checksum = deployment?.spec?.template?.metadata?.annotations?.[WorkloadAnnotation.runConfigChecksum]
  return (
    checksum !== restartChecksum(running) ||
    (wantsOidc && running.incomingAuth.type !== 'oidc') ||
    (wantsPolicies && running.incomingAuth.authz?.type !== 'cedar') ||
    (wanted.audit.enabled && running.audit?.enabled !== true)
  )
}
