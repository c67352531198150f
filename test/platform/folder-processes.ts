import { readdirSync, readFileSync } from 'node:fs'
import { isAlive, type ProcessIdentity, processStart } from '@thv/programs/process-identity'
import { eventually } from './fixture-platform.ts'
import { descendantsOf, type PlatformProcess } from './platform-process.ts'
import { allProcesses } from './process-list.ts'

const GONE_WITHIN_MS = 60_000

/**
 * All processes of a platform but itself: its descendants, and those whose command or environment names the data folder or a container
 * of it, for guards have no parent on purpose.
 */
export function processesOf({ pid, folder }: Pick<PlatformProcess, 'pid' | 'folder'>): ProcessIdentity[] {
  const found = new Map(descendantsOf(pid, allProcesses()).map((each) => [each.pid, each]))
  const marks = new Set([...found.keys()].flatMap((each) => markOf(each) ?? []))
  for (const name of readdirSync('/proc')) {
    const each = Number(name)
    if (!/^\d+$/.test(name) || each === process.pid || each === pid || found.has(each)) continue
    const start = processStart(each)
    const isOurs = textOf(each).includes(folder) || marks.has(markOf(each) ?? 'none')
    if (isOurs && start !== undefined) found.set(each, { pid: each, start })
  }
  return [...found.values()]
}

/** Fails with their command lines when some still run after a while. */
export async function allGone(processes: readonly ProcessIdentity[]): Promise<void> {
  const alive = () => processes.filter(isAlive)
  await eventually('the processes have ended', () => alive().length === 0, GONE_WITHIN_MS).catch((cause: unknown) => {
    throw new Error(`still alive: ${alive().map(({ pid }) => `${pid} ${textOf(pid).slice(0, 200)}`)}`, { cause })
  })
}

function markOf(pid: number): string | undefined {
  return /\0THV_CONTAINER=([^\0]+)/.exec(textOf(pid))?.[1]
}

function textOf(pid: number): string {
  try {
    return `${readFileSync(`/proc/${pid}/cmdline`, 'latin1')}\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`
  } catch {
    return '' // it has just ended
  }
}
