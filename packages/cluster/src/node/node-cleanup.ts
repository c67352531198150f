import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { processStart } from '@thv/programs/process-identity'
import { killMarked, sendSignal } from './process/process-table.ts'

/** Ends what a node that died has left behind: by mark, and by the ids and start times that it wrote down. */
export async function endLeftovers(folder: string, mark: string): Promise<void> {
  await killMarked(mark)
  for (const uid of await namesIn(join(folder, 'pods'))) {
    const processes = join(folder, 'pods', uid, 'processes')
    for (const name of await namesIn(processes)) {
      await endRecorded(join(processes, name))
      await rm(join(processes, name), { force: true })
    }
  }
}

/** Removes the files of pods that are no longer there. */
export async function removeStaleFolders(folder: string, isKnown: (uid: string) => boolean): Promise<void> {
  for (const part of ['pods', 'logs']) {
    for (const uid of await namesIn(join(folder, part))) {
      if (!isKnown(uid)) await rm(join(folder, part, uid), { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    }
  }
}

async function endRecorded(file: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => '') // half-written: the process was hardly started, and its guard has ended it
  const match = /^\{"pid":(\d+),"start":"([^"]*)"\}$/.exec(text)
  const pid = Number(match?.[1] ?? 0)
  if (pid > 1 && processStart(pid) === match?.[2]) sendSignal(-pid, 'SIGKILL')
}

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
}
