import { join } from 'node:path'
import { bundledCatalog } from '@thv/catalog/bundled/bundled-catalog'
import { type ReadOptions, type ReadResult, readConfig } from './read-config.ts'
import type { RegistryConfig } from './registry-config.ts'

/**
 * Served without a configuration: well-known public servers, and a place to publish own ones. Every user of this machine may read;
 * publishing needs the token in the data folder, and never takes a name of the catalog. All other defaults are those of a file.
 */
export function defaultConfig(options: ReadOptions): ReadResult {
  const { env, dataDir } = options
  const authMode = options.authMode ?? (env['THV_REGISTRY_AUTH_MODE'] ? undefined : 'anonymous')
  const read = readConfig(PUBLISH_ONLY, { env, dataDir, folder: dataDir, ...(authMode !== undefined && { authMode }) })
  if (!read.ok) return read
  const { auth } = read.config
  const tokenFile = join(dataDir, WRITE_TOKEN_FILE)
  const config: RegistryConfig = {
    ...read.config,
    auth: auth.mode === 'anonymous' ? { writeTokenFile: tokenFile, ...auth } : auth,
    sources: [
      ...read.config.sources,
      { name: CATALOG, file: { data: JSON.stringify(bundledCatalog) }, format: 'upstream', intervalMs: A_DAY_MS },
    ],
    registries: [{ name: 'default', sources: [CATALOG, PUBLISHED] }],
  }
  return { ...read, config }
}

const WRITE_TOKEN_FILE = 'write-token'
const PUBLISHED = 'published'
const CATALOG = 'catalog'
const A_DAY_MS = 24 * 60 * 60_000
const PUBLISH_ONLY = `sources: [{name: ${PUBLISHED}, managed: {}}]\nregistries: [{name: default, sources: [${PUBLISHED}]}]\n`

/** In the folder where the server is started. Not that of the registry of `thv up`, which may run there too. */
export const DEFAULT_DATA_DIR = join('.thv', 'registry-api')
