import { type ChildProcess, spawn } from 'node:child_process'
import { type Clock, systemClock } from '@thv/kernel/clock'

/**
 * Ends child processes when this process dies, however it dies (SIGKILL too). A shell in a session of its own holds the other end of a
 * pipe; the system closes the pipe with us, and the shell then kills the process groups it knows. It is a shell and not a Node
 * script because it costs one megabyte instead of forty, and because it needs no file beside a bundle.
 */
export interface ProcessGuard {
  watch(groupLeader: number): void
  /** Must be called as soon as a group has ended: its id may be given to somebody else. */
  forget(groupLeader: number): void
  /** Kills all groups that are still watched. Resolves when that is done. */
  close(): Promise<void>
}

const SCRIPT = `
trap '' HUP INT TERM QUIT
groups=' '
while read -r verb pid; do
  case "$groups" in *" $pid "*) groups="\${groups%%" $pid "*} \${groups#*" $pid "}";; esac
  if [ "$verb" = watch ]; then groups="$groups$pid "; fi
done
for pid in $groups; do kill -s KILL -- "-$pid" 2>/dev/null; done
`

const CLOSE_LIMIT_MS = 5_000

export function createProcessGuard(onProblem: (message: string) => void, clock: Clock = systemClock): ProcessGuard {
  const watched = new Set<number>()
  let shell: ChildProcess | undefined
  let closed = false

  /** Started when first needed, and again when somebody has killed it. */
  function tell(line: string): void {
    if (shell === undefined) {
      shell = startShell()
      for (const pid of watched) shell.stdin?.write(`watch ${pid}\n`)
    } else {
      shell.stdin?.write(`${line}\n`)
    }
  }

  function startShell(): ChildProcess {
    const child = spawn('/bin/sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env: {} })
    const gone = (why: string) => {
      if (shell !== child) return
      shell = undefined
      if (!closed) onProblem(`the process guard has ended (${why}); children would outlive a crash until the next one is started`)
    }
    child.once('error', (error) => gone(error.message))
    child.once('exit', (code, signal) => gone(signal ?? `code ${code}`))
    child.stdin?.on('error', (error) => gone(error.message))
    // It must not keep the process alive that it guards.
    child.unref()
    const pipe = child.stdin
    if (pipe !== null && 'unref' in pipe && typeof pipe.unref === 'function') pipe.unref()
    return child
  }

  return {
    watch(pid) {
      if (!Number.isSafeInteger(pid) || pid <= 1) throw new RangeError(`${pid} is not the id of a process group`)
      watched.add(pid)
      tell(`watch ${pid}`)
    },
    forget(pid) {
      if (watched.delete(pid) && shell !== undefined) tell(`forget ${pid}`)
    },
    async close() {
      closed = true
      watched.clear()
      const child = shell
      if (child === undefined) return
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
      child.stdin?.end()
      const late = new AbortController()
      await Promise.race([ended, clock.sleep(CLOSE_LIMIT_MS, late.signal).catch(() => undefined)])
      late.abort()
    },
  }
}
