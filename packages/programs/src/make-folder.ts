import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder and its missing parents. Throws what the system says, such as ENOENT, EACCES or ENOTDIR. Not `mkdir` with
 * `recursive`: below /proc, where a parent exists and yet nothing can be created, Node tries parent and child in turns without an end.
 */
export function makeFolder(path: string, mode = 0o777): void {
  const missing: string[] = []
  for (let folder = path; !isFolder(folder); folder = dirname(folder)) missing.push(folder)
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode })
    } catch (error) {
      if (!isFolder(folder)) throw error // else another process was faster
    }
  }
}

/** False also for a file: creating a folder in its place then fails with EEXIST. */
function isFolder(path: string): boolean {
  return path === dirname(path) || (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false)
}
