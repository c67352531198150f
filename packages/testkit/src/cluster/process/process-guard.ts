import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Ends child processes when this process dies, however it dies (SIGKILL too).
 *
 * A small process in a session of its own holds the other end of a pipe. The system closes that pipe with us; it then kills the
 * registered process groups, puts system settings back and removes the folders. Works alike on Linux and macOS. Guarded children must be started
 * `detached`, so that each leads a group of its own.
 */
export interface ProcessGuard {
  readonly pid: number
  watch(groupLeader: number): void
  /** Must be called as soon as a child has ended: its id may be given to somebody else. */
  forget(groupLeader: number): void
  removeAtEnd(folder: string): void
  /** A control group (its folder below /sys/fs/cgroup), with all below it. */
  removeControlGroupAtEnd(folder: string): void
  /** Writes this value into a file below /proc/sys. */
  restoreAtEnd(path: string, value: string): void
  /** Ends the guard; what is still watched is killed, folders are removed. Resolves when that is done. */
  close(): Promise<void>
}

/** Folders that a guard is willing to remove carry this in their name: a wrong path must not cost anybody's files. */
export const guardedFolderPrefix = 'thv-testkit-'

/** Thousands of files of a database on a busy disk take a while. */
const closeLimitMs = 120_000

export function startGuard(): ProcessGuard {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./process-guard-main.ts', import.meta.url))], {
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
    // Options meant for the process under test (inspectors, loaders) must not reach the guard.
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  if (child.pid === undefined) throw new Error('the process guard could not be started')
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  // The guard must not keep the process alive that it guards; a write after its end shows up at close().
  child.unref()
  const pipe = child.stdin
  if ('unref' in pipe && typeof pipe.unref === 'function') pipe.unref()
  let broken: Error | undefined
  pipe.on('error', (error) => {
    broken = error
  })
  const tell = (line: string) => {
    if (broken) throw new Error('the process guard has ended', { cause: broken })
    pipe.write(`${line}\n`)
  }

  return {
    pid: child.pid,
    watch: (pid) => tell(`watch ${pid}`),
    forget: (pid) => {
      if (!pipe.writableEnded && !broken) tell(`forget ${pid}`)
    },
    removeAtEnd: (folder) => tell(`remove ${folder}`),
    removeControlGroupAtEnd: (folder) => tell(`cgroup ${folder}`),
    restoreAtEnd: (path, value) => tell(`restore ${path} ${value}`),
    close: async () => {
      pipe.end()
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`the process guard did not end within ${closeLimitMs} ms`)), closeLimitMs)
      })
      await Promise.race([ended, late]).finally(() => clearTimeout(timer))
    },
  }
}
