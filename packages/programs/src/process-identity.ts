import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A process id alone is reused by the system; with the start time it names one process for good. */
export interface ProcessIdentity {
  readonly pid: number
  readonly start: string
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, start: processStart(process.pid) ?? 'unknown' }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return processStart(identity.pid) === identity.start
}

/** When the process started, as an opaque text. Undefined when it does not run: a zombie has ended too. */
export function processStart(pid: number): string | undefined {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid)
}

function fromProc(pid: number): string | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
  return startFromStat(stat)
}

/** proc(5): the second field is the command in brackets and may hold anything, so counting starts after the last bracket. */
export function startFromStat(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, start] = [fields[0], fields[19]]
  return state === 'Z' || state === 'X' ? undefined : start
}

function fromPs(pid: number): string | undefined {
  const ps = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
  })
  if (ps.error) throw ps.error
  const [state = '', ...start] = ps.stdout.trim().split(/\s+/)
  return state === '' || state.startsWith('Z') ? undefined : start.join(' ')
}

function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOENT' || code === 'ESRCH'
}
