import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Daemon } from '../cluster/process/daemon.ts'
import { freezeProcess, unfreezeProcess } from '../cluster/process/process-freeze.ts'

const killLimitMs = 60_000

export function freezeAll(pid: number): void {
  // The parent first: it could make new ones.
  freezeProcess(pid)
  for (const child of childrenOf(pid)) freezeProcess(child)
}

export function unfreezeAll(pid: number): void {
  for (const one of [...childrenOf(pid), pid]) unfreezeProcess(one)
}

/** Each child leads a process group of its own; left alone it would keep the shared memory, and a new server would refuse to start. */
export async function killAll(daemon: Daemon): Promise<void> {
  if (!daemon.running) return
  freezeProcess(daemon.pid)
  const children = childrenOf(daemon.pid)
  await daemon.kill()
  for (const pid of children) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  const deadline = performance.now() + killLimitMs
  while (children.some(isRunning)) {
    if (performance.now() > deadline) throw new Error(`processes of PostgreSQL survived SIGKILL: ${children.filter(isRunning).join(', ')}`)
    await sleep(10)
  }
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

/** A zombie whose new parent has not looked yet does no harm. */
function isRunning(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2) !== 'Z'
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}
