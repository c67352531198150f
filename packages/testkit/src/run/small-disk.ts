import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Whether this process may mount file systems. */
export function canMountDisks(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  const path = mkdtempSync(join(tmpdir(), 'thv-mount-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', path])
  if (status === 0) execFileSync('umount', [path])
  rmdirSync(path)
  return status === 0
}

/** A file system of its own over a folder that is there. `size` as mount takes it, such as `32m`. */
export function mountSmallDisk(path: string, size: string): Disposable {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', path])
  return { [Symbol.dispose]: () => void execFileSync('umount', [path]) }
}

/** Takes all room of the file system; returns how to give it back. */
export function fillDisk(path: string): () => void {
  const file = join(path, 'filler')
  const filler = openSync(file, 'w')
  // In ever smaller pieces, to the last byte.
  for (let size = 1 << 20; size >= 1; size = Math.floor(size / 2)) {
    try {
      for (;;) if (writeSync(filler, Buffer.alloc(size)) < size) break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
  closeSync(filler)
  return () => rmSync(file)
}

/**
 * Lets a process write no longer files, which is the same to it as a full disk but for the code of the error, EFBIG; returns how to undo it. For
 * who may not mount.
 */
export function refuseLongerFiles(pid: number): () => void {
  limitFiles(pid, '1:unlimited')
  return () => limitFiles(pid, 'unlimited')
}

function limitFiles(pid: number, limit: string): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${limit}`], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`prlimit: ${stderr}`)
}
