import type { CanonicalCABundleRef } from '@thv/resources/shared/ca-bundle-ref'
import { type CanonicalInlineOidc, DEFAULT_OIDC_SCOPES } from '@thv/resources/shared/inline-oidc'
import { type CanonicalKubernetesOidc, type CanonicalOidcConfig, DEFAULT_KUBERNETES_ISSUER } from '@thv/resources/shared/oidc-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Blocker } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'
import { readExternalOidc } from './external-oidc.ts'
import { readOidcConfigMap } from './oidc-config-map.ts'

/** The settings of any source, in one shape. URLs, Secrets and files are not checked yet. */
export interface OidcSettings {
  /** Where a member is written, for messages. */
  readonly at: (member: string) => string
  readonly issuer: string
  /** The issuer is whatever the API server of the cluster says. */
  readonly isThisCluster: boolean
  readonly audience?: string | undefined
  /** The subject itself, or its beginning and `*`. */
  readonly requiredSubject?: string | undefined
  readonly jwksUrl?: string | undefined
  readonly introspectionUrl?: string | undefined
  readonly clientId?: string | undefined
  readonly clientSecret?: ClientSecret | undefined
  /** A file that is in the proxy container anyway. */
  readonly caBundlePath?: string | undefined
  readonly caBundleRef?: CanonicalCABundleRef | undefined
  readonly authTokenPath?: string | undefined
  /** Whether the CA of the cluster, and towards its API server a token, are used. */
  readonly clusterAuth: boolean
  readonly allowPrivateIp: boolean
  readonly jwksAllowPrivateIp: boolean
  readonly insecureAllowHttp: boolean
  readonly scopes: readonly string[]
}

export type ClientSecret =
  | { readonly from: 'secret'; readonly ref: { name: string; key: string } }
  /** Stays in the ConfigMap of the user. `version` changes when that does. */
  | { readonly from: 'configMap'; readonly ref: { name: string; key: string }; readonly version: string }
  | { readonly from: 'text'; readonly value: string }

export type SettingsResult = { readonly ok: true; readonly settings: OidcSettings } | { readonly ok: false; readonly blockers: Blocker[] }

export interface SettingsContext {
  readonly namespace: string
  /** Where clients reach the workload. */
  readonly resourceUrl: string
  readonly lookup: Pick<Lookup, 'configMap' | 'secret' | 'externalAuthConfig'>
}

export function readOidcSettings(config: CanonicalOidcConfig, { namespace, resourceUrl, lookup }: SettingsContext): SettingsResult {
  switch (config.type) {
    case 'kubernetes':
      return fromKubernetes(config.kubernetes, namespace)
    case 'configMap':
      return readOidcConfigMap(config.configMap, lookup)
    case 'inline':
      return { ok: true, settings: inlineSettings(config.inline, (member) => `spec.oidcConfig.inline.${member}`) }
    case 'external': {
      const read = readExternalOidc(config.external.name, { resourceUrl, lookup })
      return read.ok ? { ok: true, settings: inlineSettings(read.oidc, read.at) } : read
    }
  }
}

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function fromKubernetes(kubernetes: CanonicalKubernetesOidc, ownNamespace: string): SettingsResult {
  const at = (member: string) => `spec.oidcConfig.kubernetes.${member}`
  const { issuer, audience, jwksUrl, introspectionUrl, useClusterAuth } = kubernetes
  const { serviceAccount = '', namespace = '' } = kubernetes
  // Anything else could widen the subject: a `*` at its end means "whatever follows".
  const isName = (serviceAccount === '' || SUBDOMAIN.test(serviceAccount)) && (namespace === '' || LABEL.test(namespace))
  if (!isName) {
    const message = `${at('serviceAccount')} and ${at('namespace')} must be names of Kubernetes objects: lower-case letters, digits and dashes`
    return { ok: false, blockers: [{ condition: WorkloadCondition.ConfigurationValid, reason: WorkloadReason.InvalidSpec, message }] }
  }
  const requiredSubject =
    serviceAccount !== ''
      ? `system:serviceaccount:${namespace === '' ? ownNamespace : namespace}:${serviceAccount}`
      : namespace !== ''
        ? `system:serviceaccount:${namespace}:*`
        : undefined
  return {
    ok: true,
    settings: {
      at,
      issuer,
      isThisCluster: issuer === DEFAULT_KUBERNETES_ISSUER && !jwksUrl,
      audience,
      requiredSubject,
      jwksUrl,
      introspectionUrl,
      clusterAuth: useClusterAuth,
      allowPrivateIp: useClusterAuth,
      jwksAllowPrivateIp: useClusterAuth,
      insecureAllowHttp: false,
      scopes: DEFAULT_OIDC_SCOPES,
    },
  }
}

function inlineSettings(inline: CanonicalInlineOidc, at: OidcSettings['at']): OidcSettings {
  const { issuer, audience, jwksUrl, introspectionUrl, clientId, clientSecret, clientSecretRef, scopes } = inline
  const { thvCABundlePath, caBundleRef, jwksAuthTokenPath } = inline
  return {
    at,
    issuer,
    isThisCluster: false,
    audience,
    jwksUrl,
    introspectionUrl,
    clientId,
    clientSecret: clientSecretRef
      ? { from: 'secret', ref: clientSecretRef }
      : clientSecret
        ? { from: 'text', value: clientSecret }
        : undefined,
    caBundlePath: thvCABundlePath,
    caBundleRef: thvCABundlePath ? undefined : caBundleRef,
    authTokenPath: jwksAuthTokenPath,
    clusterAuth: false,
    allowPrivateIp: inline.protectedResourceAllowPrivateIP,
    jwksAllowPrivateIp: inline.jwksAllowPrivateIP,
    insecureAllowHttp: inline.insecureAllowHTTP,
    scopes,
  }
}
