import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { writePrivate } from '../local-platform/running-platform.ts'

/** The registry of a data folder: noted, so that the next start takes the same port and `thv search` finds it. */
export interface RegistryNote {
  readonly url: string
  /** Why it does not run. */
  readonly problem?: string
}

const FILE = 'registry.json'

export function notedRegistry(folder: string): RegistryNote | undefined {
  try {
    const { url, problem } = JSON.parse(readFileSync(join(folder, FILE), 'utf8')) as Partial<Record<keyof RegistryNote, unknown>>
    if (typeof url !== 'string' || !URL.canParse(url)) return undefined
    return typeof problem === 'string' ? { url, problem } : { url }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR' || error instanceof SyntaxError) return undefined
    throw new ThvError('data_folder_failed', `${join(folder, FILE)} cannot be read`, { cause: error })
  }
}

export function noteRegistry(folder: string, note: RegistryNote): void {
  writePrivate(join(folder, FILE), `${JSON.stringify(note, null, 2)}\n`)
}

/** Removes the note, so that no command looks for the registry. */
export function forgetRegistry(folder: string): void {
  rmSync(join(folder, FILE), { force: true })
}
