import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import { certificateFolder, secretFolder } from './registry-place.ts'
import type { FieldProblem } from './server-config.ts'

type AuthConfig = CanonicalMCPRegistrySpec['authConfig']
type Provider = NonNullable<AuthConfig['oauth']>['providers'][number]

/** Scopes that the metadata offers when the resource names none. */
const DEFAULT_SCOPES = ['mcp-registry:read', 'mcp-registry:write']
export const DEFAULT_CA_KEY = 'ca.crt'

/** The `auth` block of the server: references become paths of mounted files. */
export function renderAuth({ mode, oauth, writeTokenSecretRef: token }: AuthConfig): object {
  if (mode === 'anonymous') return { mode, ...(token && { writeTokenFile: `${secretFolder(token.name)}/${token.key}` }) }
  const { providers = [], resourceUrl, realm, scopesSupported = DEFAULT_SCOPES } = oauth ?? {}
  return {
    mode,
    oauth: {
      ...(resourceUrl !== undefined && { resourceUrl }),
      ...(realm !== undefined && { realm }),
      scopesSupported,
      providers: providers.map(renderProvider),
    },
  }
}

/** A reference and a path for the same file: one of them would be ignored. */
export function authProblems({ oauth }: AuthConfig): FieldProblem[] {
  return (oauth?.providers ?? []).flatMap(({ caCertRef, caCertPath, authTokenRef, authTokenFile }, index) => {
    const at = `spec.authConfig.oauth.providers[${index}]`
    return [
      ...(caCertRef && caCertPath ? [{ field: `${at}.caCertPath`, message: 'cannot be set beside caCertRef' }] : []),
      ...(authTokenRef && authTokenFile ? [{ field: `${at}.authTokenFile`, message: 'cannot be set beside authTokenRef' }] : []),
    ]
  })
}

function renderProvider(provider: Provider): object {
  const { clientSecretRef, caCertRef, authTokenRef, caCertPath, authTokenFile, ...rest } = provider
  const caFile = caCertRef ? `${certificateFolder(caCertRef.name)}/${caCertRef.key ?? DEFAULT_CA_KEY}` : caCertPath
  const tokenFile = authTokenRef ? `${secretFolder(authTokenRef.name)}/${authTokenRef.key}` : authTokenFile
  return {
    ...rest,
    ...(clientSecretRef && { clientSecretFile: `${secretFolder(clientSecretRef.name)}/${clientSecretRef.key}` }),
    ...(caFile !== undefined && { caCertPath: caFile }),
    ...(tokenFile !== undefined && { authTokenFile: tokenFile }),
  }
}
