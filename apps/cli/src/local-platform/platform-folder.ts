import { resolve } from 'node:path'
import { DATA_FOLDER, findDataFolder } from '../cluster/open-cluster.ts'

export interface PlatformFlags {
  readonly dataDir?: string
}

/** The named data folder, else the nearest one here or above. */
export function platformFolder({ dataDir }: PlatformFlags, { cwd }: { readonly cwd: string }): string {
  return dataDir === undefined ? (findDataFolder(cwd) ?? resolve(cwd, DATA_FOLDER)) : resolve(cwd, dataDir)
}
