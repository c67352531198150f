import type { VmcpConfig } from './vmcp-config.ts'

/** Fields of parts that a virtual server makes once: a change of them needs another start. All others are taken over while it runs. */
export const RESTART_FIELDS = [
  'name',
  'authServer',
  'sessionStorage',
  'audit',
  'telemetry',
  'rateLimiting',
  'trustProxyHeaders',
  'trustedProxies',
  'allowedHosts',
  'serviceHosts',
] as const

/** The part of a configuration that needs another start when it changes. Of the policies only whether there are any, and whose claims they see. Pure. */
export function restartPart(config: VmcpConfig): Readonly<Record<string, unknown>> {
  const { authz, ...incomingAuth } = config.incomingAuth
  return {
    ...Object.fromEntries(RESTART_FIELDS.map((field) => [field, config[field]])),
    incomingAuth: { ...incomingAuth, hasPolicies: authz?.type === 'cedar', primaryUpstreamProvider: authz?.primaryUpstreamProvider },
    source: config.outgoingAuth.source,
  }
}
