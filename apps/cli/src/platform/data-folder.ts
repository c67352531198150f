import { accessSync, constants } from 'node:fs'
import { ThvError } from '@thv/kernel/errors'
import { makeFolder } from '@thv/programs/make-folder'

/** Creates the data folder of a platform, for its owner only. Throws `data_folder_failed`, which names the reason. */
export function prepareDataFolder(folder: string): void {
  try {
    makeFolder(folder, 0o700)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new ThvError('data_folder_failed', `cannot use the data folder ${folder} (choose another with --data-dir)`, { cause })
  }
}
