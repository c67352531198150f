import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { ThvError } from '@thv/kernel/errors'
import { processStart } from '@thv/programs/process-identity'
import { CONTAINER_MARK, killMarked, sendSignal } from './process-table.ts'

export interface GuardedCommand {
  /** An absolute path. */
  readonly file: string
  readonly args: readonly string[]
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Without it the program reads an empty stdin. */
  readonly stdin: boolean
  /** Unique among all processes of this machine. */
  readonly mark: string
}

/** A program in a process group of its own that dies with this process, however this process dies. */
export interface GuardedProcess {
  /** Also the id of its group. */
  readonly pid: number
  /** Tells it from a later process of the same id. */
  readonly start: string
  readonly stdin: Writable | undefined
  readonly stdout: Readable
  readonly stderr: Readable
  /** Never rejects. Its group and what left the group are gone then; the last output may still be in the pipes. */
  readonly ended: Promise<ProcessEnd>
  /** To the program alone, as to the first process of a container. */
  signal(name: NodeJS.Signals): void
  /** The whole group, at once. Of a program that shares its process, the program alone, if the process still runs. */
  kill(): void
  /** With the programs that share its process. */
  killAll(): void
}

export interface ProcessEnd {
  /** 128 + the number of the signal that ended it. */
  readonly exitCode: number
  readonly signal?: number
}

/**
 * The guard is a second process in the group that waits for the end of a pipe which only this process holds. The system closes the pipe
 * with us; the guard then kills all that carries the mark, and its group. It is orphaned on purpose: the program has no child that it
 * does not know. The shell becomes the program itself, so exit codes and signals are the program's own. A shell costs one megabyte.
 */
const SCRIPT = `
( (
  trap '' HUP INT QUIT TERM
  PATH=/usr/bin:/bin
  read -r _ <&3
  if [ -r /proc/self/stat ]; then
    read -r me _ </proc/self/stat
    for file in $(grep -lsF "${CONTAINER_MARK}=$${CONTAINER_MARK}" /proc/[0-9]*/environ); do
      pid=\${file#/proc/}
      pid=\${pid%/environ}
      [ "$pid" = "$me" ] || kill -s KILL "$pid"
    done
  fi
  kill -s KILL -- "-$$"
) </dev/null >/dev/null 2>&1 & )
exec "$@" 3<&-
`

/** Throws `process_start_failed`. Whether `file` can be run must be checked before: here it would only end with code 126 or 127. */
export async function startGuarded(command: GuardedCommand): Promise<GuardedProcess> {
  const { file, args, env, cwd, stdin, mark } = command
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'guard', file, ...args], {
    detached: true,
    cwd,
    env: { ...env, [CONTAINER_MARK]: mark },
    stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe'],
  })
  if (child.pid === undefined || child.stdout === null || child.stderr === null) throw await startFailure(child, file)
  const pid = child.pid
  const lifeline = child.stdio[3]
  for (const stream of child.stdio) stream?.on('error', () => {}) // the other end is gone, which `ended` says
  child.on('error', () => {}) // a signal that came too late

  let isRunning = true
  const ended = new Promise<ProcessEnd>((resolve) => {
    child.once('exit', (code, signal) => {
      isRunning = false
      sendSignal(-pid, 'SIGKILL') // the guard, and what the program left behind
      void killMarked(mark)
        .catch(() => undefined) // best effort
        .then(() => {
          lifeline?.destroy()
          resolve(endOf(code, signal))
        })
    })
  })
  const kill = () => {
    if (isRunning) sendSignal(-pid, 'SIGKILL')
  }
  return {
    pid,
    start: processStart(pid) ?? 'ended',
    stdin: child.stdin ?? undefined,
    stdout: child.stdout,
    stderr: child.stderr,
    ended,
    signal(name) {
      if (isRunning) sendSignal(pid, name)
    },
    kill,
    killAll: kill,
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): ProcessEnd {
  if (signal === null) return { exitCode: code ?? 255 }
  const number = constants.signals[signal]
  return { exitCode: 128 + number, signal: number }
}

function startFailure(child: ChildProcess, file: string): Promise<ThvError> {
  return new Promise((resolve) => {
    child.once('error', (cause: NodeJS.ErrnoException) => {
      resolve(new ThvError('process_start_failed', `${file} could not be started (${cause.code ?? 'unknown reason'})`, { cause }))
    })
  })
}
