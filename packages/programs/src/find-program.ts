import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

/** The first file of one of these names that is executable and on PATH. Relative entries of PATH are passed over, as they should be. */
export async function findProgram(names: readonly string[], path: string | undefined): Promise<string | undefined> {
  const folders = (path ?? '').split(delimiter).filter(isAbsolute)
  for (const name of names) {
    for (const folder of folders) {
      const file = join(folder, name)
      if (await isExecutable(file)) return file
    }
  }
  return undefined
}

export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false // whatever the reason, it cannot be run
    throw error
  }
}
