import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { ThvError } from '@thv/kernel/errors'

/** Whole or not at all, also when the process is killed meanwhile; only the owner may read it. For one writer at a time. */
export function writePrivateFile(file: string, content: string): void {
  const draft = `${file}.new`
  try {
    rmSync(draft, { force: true }) // a left-over would keep its own mode
    withFile(draft, 'wx', (handle) => {
      writeSync(handle, content)
      fsyncSync(handle)
    })
    renameSync(draft, file)
    withFile(dirname(file), 'r', fsyncSync)
  } catch (cause) {
    throw new ThvError('data_folder_failed', `cannot write ${file}`, { cause })
  }
}

function withFile(path: string, flags: string, use: (handle: number) => void): void {
  const handle = openSync(path, flags, 0o600)
  try {
    use(handle)
  } finally {
    closeSync(handle)
  }
}
