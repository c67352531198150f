import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { processStart } from '@thv/programs/process-identity'

/** The process that runs on a data folder. */
export interface RunningPlatform {
  readonly pid: number
  /** Of the process, as the system tells it: a number of a process is given out again, this together with it is not. */
  readonly start: string
  /** RFC 3339. */
  readonly since: string
  readonly url: string
}

const FILE = 'platform.json'

/** Undefined when none runs, also when one was killed and left its file. */
export function findRunning(folder: string): RunningPlatform | undefined {
  const noted = readNote(folder)
  return noted && processStart(noted.pid) === noted.start ? noted : undefined
}

export function isRunning({ pid, start }: RunningPlatform): boolean {
  return processStart(pid) === start
}

/** Notes this process. Returns how to take the note back. */
export function noteRunning(folder: string, url: string): () => void {
  const { pid } = process
  const note: RunningPlatform = { pid, start: processStart(pid) ?? '', since: new Date().toISOString(), url }
  writePrivate(join(folder, FILE), `${JSON.stringify(note, null, 2)}\n`)
  return () => {
    if (readNote(folder)?.pid === pid) rmSync(join(folder, FILE), { force: true })
  }
}

/** For the owner only, and never half. */
export function writePrivate(path: string, text: string): void {
  try {
    rmSync(`${path}.new`, { force: true })
    writeFileSync(`${path}.new`, text, { mode: 0o600 })
    renameSync(`${path}.new`, path)
  } catch (cause) {
    throw new ThvError('data_folder_failed', `${path} cannot be written`, { cause })
  }
}

function readNote(folder: string): RunningPlatform | undefined {
  let text: string
  try {
    text = readFileSync(join(folder, FILE), 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new ThvError('data_folder_failed', `${join(folder, FILE)} cannot be read`, { cause: error })
  }
  try {
    const note = JSON.parse(text) as RunningPlatform
    return Number.isSafeInteger(note.pid) && note.pid > 1 && typeof note.start === 'string' ? note : undefined
  } catch {
    return undefined // a half-written note of another version: it leads to no platform
  }
}
