import { realpath } from 'node:fs/promises'
import { isBelow } from '@thv/catalog/sources/fetch/location-rules'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { SyncOptions } from './sync-options.ts'

/**
 * Why the file of a source may not be read; undefined: it may, or it is not there, which reading it tells. Sources of the configuration
 * may read anything; those made through the API only what lies below `sync.allowedFolders`, after following links. Checked at every
 * sync, because folders and links change after a source was made.
 */
export async function outsideFolders(
  { name, file }: SourceConfig,
  options: Pick<SyncOptions, 'store' | 'config'>,
): Promise<string | undefined> {
  if (file?.path === undefined) return undefined
  const record = (await options.store.sources()).find(({ config }) => config.name === name)
  if (record?.creation !== 'API') return undefined
  const path = await resolved(file.path)
  const folders = (await Promise.all(options.config.allowedFolders.map(resolved))).filter((folder) => folder !== undefined)
  if (path === undefined || folders.some((folder) => isBelow(path, folder))) return undefined
  return 'file.path does not lie below a folder of sync.allowedFolders'
}

async function resolved(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    return undefined // the reader of the file reports its problem
  }
}
