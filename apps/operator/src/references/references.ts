import { normaliseMcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { normaliseMcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/normalise'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { normaliseVirtualMcpServer } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { authzConfigMaps } from '@thv/resources/shared/authz-config'
import type { CanonicalCABundleRef } from '@thv/resources/shared/ca-bundle-ref'
import type { CanonicalOidcConfig } from '@thv/resources/shared/oidc-config'
import type { CanonicalProxySettings } from '@thv/resources/shared/proxy-settings'
import type { CanonicalSessionStorage } from '@thv/resources/shared/session-storage'
import { authServerSecretUses } from './auth-config-secrets.ts'
import { templateSecrets } from './template-secrets.ts'

/** Names of the objects in the same namespace that an object is built from. Pure. */
export interface References {
  readonly groups: readonly string[]
  readonly toolConfigs: readonly string[]
  readonly externalAuthConfigs: readonly string[]
  readonly configMaps: readonly string[]
  readonly secrets: readonly string[]
  /** Only VirtualMCPServers name any. */
  readonly compositeTools?: readonly string[]
}

export function referencesOfServer(server: MCPServer): References {
  const { spec } = normaliseMcpServer(server)
  return proxyReferences(spec, {
    configMaps: spec.permissionProfile?.type === 'configmap' ? [spec.permissionProfile.name] : [],
    secrets: spec.secrets.map(({ name }) => name),
  })
}

export function referencesOfRemoteProxy(proxy: MCPRemoteProxy): References {
  const { spec } = normaliseMcpRemoteProxy(proxy)
  return proxyReferences(spec, {
    configMaps: bundle(spec.caBundleRef),
    secrets: spec.headerForward.addHeadersFromSecret.map(({ valueSecretRef }) => valueSecretRef.name),
  })
}

/** Names in the settings of a proxy, whatever it stands before, and those of its kind. */
function proxyReferences(spec: CanonicalProxySettings, own: Pick<References, 'configMaps' | 'secrets'>): References {
  const oidc = oidcReferences(spec.oidcConfig)
  const storage = storageReferences(spec.sessionStorage)
  const { caBundleRef, sensitiveHeaders } = spec.telemetry.openTelemetry
  return {
    groups: names(spec.groupRef),
    toolConfigs: names(spec.toolConfigRef),
    externalAuthConfigs: names(spec.externalAuthConfigRef, spec.authServerRef, externalOidc(spec.oidcConfig)),
    configMaps: unique([
      ...oidc.configMaps,
      ...bundle(caBundleRef),
      ...authzConfigMaps(spec.authzConfig),
      ...storage.configMaps,
      ...own.configMaps,
    ]),
    secrets: unique([
      ...oidc.secrets,
      ...own.secrets,
      ...sensitiveHeaders.map(({ secretKeyRef }) => secretKeyRef.name),
      ...storage.secrets,
      ...templateSecrets(spec.podTemplateSpec),
    ]),
  }
}

export function referencesOfServerEntry(entry: MCPServerEntry): References {
  const { spec } = normaliseMcpServerEntry(entry)
  return {
    groups: names(spec.groupRef),
    toolConfigs: [],
    externalAuthConfigs: names(spec.externalAuthConfigRef),
    configMaps: bundle(spec.caBundleRef),
    secrets: unique(spec.headerForward.addHeadersFromSecret.map(({ valueSecretRef }) => valueSecretRef.name)),
  }
}

export function referencesOfVirtualServer(virtual: VirtualMCPServer): References {
  const { spec } = normaliseVirtualMcpServer(virtual)
  const { default: fallback, backends } = spec.outgoingAuth
  const auths = [...(fallback ? [fallback] : []), ...Object.values(backends)]
  const { incomingAuth } = spec
  const { telemetry } = spec.config
  const oidc = oidcReferences(incomingAuth?.type === 'oidc' ? incomingAuth.oidcConfig : undefined)
  return {
    groups: names(spec.groupRef),
    toolConfigs: unique(toolConfigsOf(spec.config)),
    externalAuthConfigs: unique(auths.flatMap((auth) => (auth.type === 'externalAuthConfigRef' ? [auth.externalAuthConfigRef.name] : []))),
    configMaps: unique([
      ...oidc.configMaps,
      ...authzConfigMaps(incomingAuth?.authzConfig),
      ...storageReferences(spec.sessionStorage).configMaps,
      ...bundle(telemetry.caBundleRef),
    ]),
    secrets: unique([
      ...oidc.secrets,
      ...(spec.authServerConfig ? authServerSecretUses(spec.authServerConfig, 'authServerConfig').map(({ name }) => name) : []),
      ...telemetry.sensitiveHeaders.map(({ secretKeyRef }) => secretKeyRef.name),
      ...storageReferences(spec.sessionStorage).secrets,
      ...templateSecrets(spec.podTemplateSpec),
    ]),
    compositeTools: unique(spec.compositeToolRefs.map(({ name }) => name)),
  }
}

/** Of all together. */
export function joinReferences(...all: readonly References[]): References {
  const join = (kind: keyof References) => unique(all.flatMap((each) => each[kind] ?? []))
  return {
    groups: join('groups'),
    toolConfigs: join('toolConfigs'),
    externalAuthConfigs: join('externalAuthConfigs'),
    configMaps: join('configMaps'),
    secrets: join('secrets'),
    compositeTools: join('compositeTools'),
  }
}

export function referencesOfExternalAuthConfig(config: MCPExternalAuthConfig): References {
  const { spec } = normaliseMcpExternalAuthConfig(config)
  return {
    groups: [],
    toolConfigs: [],
    externalAuthConfigs: [],
    configMaps: bundle(spec.oidc?.caBundleRef),
    secrets: unique(secretNames(spec)),
  }
}

function externalOidc(config: CanonicalOidcConfig | undefined): { name: string } | undefined {
  return config?.type === 'external' ? config.external : undefined
}

function oidcReferences(config: CanonicalOidcConfig | undefined): Pick<References, 'configMaps' | 'secrets'> {
  if (config?.type === 'configMap') return { configMaps: [config.configMap.name, ...bundle(config.configMap.caBundleRef)], secrets: [] }
  if (config?.type !== 'inline') return { configMaps: [], secrets: [] }
  return { configMaps: bundle(config.inline.caBundleRef), secrets: names(config.inline.clientSecretRef) }
}

function bundle(ref: CanonicalCABundleRef | undefined): string[] {
  return ref ? [ref.configMapRef.name] : []
}

function storageReferences(storage: CanonicalSessionStorage | undefined): Pick<References, 'configMaps' | 'secrets'> {
  if (storage?.provider !== 'redis') return { configMaps: [], secrets: [] }
  const { passwordRef, sentinel, encryptionKeyRef, tls } = storage
  return { configMaps: bundle(tls?.caBundleRef), secrets: names(passwordRef, sentinel?.passwordRef, encryptionKeyRef) }
}

function toolConfigsOf(config: unknown): string[] {
  return collect(
    config,
    (key, value) => key === 'toolConfigRef' && isNamed(value),
    ({ name }) => name,
  )
}

/** Every `…SecretRef` and `…SecretRefs` of an auth config, however deep. */
function secretNames(spec: unknown): string[] {
  return collect(
    spec,
    (key, value) => /(SecretRefs?|TokenRef)$/.test(key) && isNamed(value),
    ({ name }) => name,
  )
}

function collect(
  value: unknown,
  wanted: (key: string, value: unknown) => boolean,
  pick: (value: { name: string }) => string,
  key = '',
): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => collect(item, wanted, pick, key))
  if (typeof value !== 'object' || value === null) return []
  if (wanted(key, value)) return [pick(value as { name: string })]
  return Object.entries(value).flatMap(([member, inner]) => collect(inner, wanted, pick, member))
}

function isNamed(value: unknown): value is { name: string } {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
}

function names(...refs: ({ name: string } | undefined)[]): string[] {
  return unique(refs.flatMap((ref) => (ref ? [ref.name] : [])))
}

function unique(list: readonly string[]): string[] {
  return [...new Set(list)]
}
