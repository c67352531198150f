import { existsSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { AuthConfig, ProviderConfig } from '../access/auth-config.ts'
import type { Env } from './env-values.ts'
import type { RegistryConfig } from './registry-config.ts'

/**
 * The configuration with paths of mounted files as this process sees them. A node without containers lays volumes out below a folder that it
 * names in THV_ROOT; everywhere else nothing changes. A file need not be there yet: the folder that holds it is.
 */
export function mountedConfig(config: RegistryConfig, env: Env): RegistryConfig {
  const root = env['THV_ROOT']
  if (!root) return config
  const at = (path: string): string => {
    if (!isAbsolute(path)) return path
    const mounted = join(root, path)
    return existsSync(mounted) || existsSync(dirname(mounted)) ? mounted : path
  }
  const { storage, auth } = config
  return {
    ...config,
    sources: config.sources.map((source) => mountedSource(source, at)),
    storage: storage.kind === 'sqlite' && storage.path !== undefined ? { ...storage, path: at(storage.path) } : storage,
    auth: mountedAuth(auth, at),
  }
}

function mountedAuth(auth: AuthConfig, at: (path: string) => string): AuthConfig {
  const { writeTokenFile, oauth } = auth
  return {
    ...auth,
    ...(writeTokenFile !== undefined && { writeTokenFile: at(writeTokenFile) }),
    ...(oauth !== undefined && { oauth: { ...oauth, providers: oauth.providers.map((provider) => mountedProvider(provider, at)) } }),
  }
}

function mountedProvider(provider: ProviderConfig, at: (path: string) => string): ProviderConfig {
  const { clientSecretFile, caCertPath, authTokenFile } = provider
  return {
    ...provider,
    ...(clientSecretFile !== undefined && { clientSecretFile: at(clientSecretFile) }),
    ...(caCertPath !== undefined && { caCertPath: at(caCertPath) }),
    ...(authTokenFile !== undefined && { authTokenFile: at(authTokenFile) }),
  }
}

function mountedSource(source: SourceConfig, at: (path: string) => string): SourceConfig {
  const { file, git } = source
  if (file?.path !== undefined) return { ...source, file: { ...file, path: at(file.path) } }
  if (git?.auth !== undefined) return { ...source, git: { ...git, auth: { ...git.auth, passwordFile: at(git.auth.passwordFile) } } }
  return source
}
