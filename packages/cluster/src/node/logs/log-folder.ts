import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** One file of a container's log: which run of the container, and which part of that run's log. */
export interface LogPart {
  readonly run: number
  readonly part: number
  readonly path: string
}

const NAME = /^(\d{1,9})-(\d{1,9})\.log$/

/** `logs/<pod uid>/<container>/<run>-<part>.log`. Parts are never renamed, so a reader that is behind finds its way on. */
export function logFolder(nodeFolder: string, uid: string, container: string): string {
  return join(nodeFolder, 'logs', uid, container)
}

export function partPath(folder: string, run: number, part: number): string {
  return join(folder, `${run}-${part}.log`)
}

/** In order of writing; empty when there is no such folder. */
export async function logParts(folder: string): Promise<LogPart[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const parts = names.flatMap((name) => {
    const match = NAME.exec(name)
    return match ? [{ run: Number(match[1]), part: Number(match[2]), path: join(folder, name) }] : []
  })
  return parts.sort((a, b) => a.run - b.run || a.part - b.part)
}

/** Makes room for a run: its own old files and those of all runs but the one before it go. */
export async function prepareLogFolder(folder: string, run: number): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const parts = await logParts(folder)
  const kept = Math.max(-1, ...parts.map((part) => part.run).filter((number) => number < run))
  for (const part of parts) if (part.run !== kept) await rm(part.path, { force: true })
}
