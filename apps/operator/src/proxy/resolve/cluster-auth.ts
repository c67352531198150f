import type { Contribution } from '../contribution.ts'
import type { OidcSettings } from './oidc-settings.ts'

const FOLDER = '/var/run/secrets/toolhive.stacklok.dev/oidc'
const VOLUME = 'oidc-cluster-auth'

export interface ClusterAuth extends Required<Pick<Contribution, 'volumes' | 'volumeMounts'>> {
  readonly caPath: string
  readonly tokenPath?: string
}

/**
 * The volume with which a proxy fetches the keys of the cluster's own tokens. It comes in a volume of its own, as not every proxy has the usual
 * folder of its account: that of a remote server must not have one. The token is a credential for the API server, so it is there only
 * when no other server is called with it.
 */
export function clusterAuth(settings: OidcSettings, clusterDomain = 'cluster.local'): ClusterAuth | undefined {
  if (!settings.clusterAuth) return undefined
  const called = [settings.jwksUrl || settings.issuer, settings.introspectionUrl].filter((url) => typeof url === 'string' && url !== '')
  const withToken = called.every((url) => isApiServer(url ?? '', clusterDomain))
  const sources = [
    ...(withToken ? [{ serviceAccountToken: { path: 'token', expirationSeconds: 3600 } }] : []),
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
  ]
  return {
    caPath: `${FOLDER}/ca.crt`,
    ...(withToken && { tokenPath: `${FOLDER}/token` }),
    volumes: [{ name: VOLUME, projected: { sources } }],
    volumeMounts: [{ name: VOLUME, mountPath: FOLDER, readOnly: true }],
  }
}

function isApiServer(url: string, clusterDomain: string): boolean {
  const host = URL.parse(url)?.hostname.replace(/\.$/, '')
  return host !== undefined && ['kubernetes.default', 'kubernetes.default.svc', `kubernetes.default.svc.${clusterDomain}`].includes(host)
}
