import { readdir, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface ProcessMemory {
  /** A page that several processes share counts for each of them by its share. */
  readonly pssMb: number
  readonly rssMb: number
  /** Shared with no other process. */
  readonly privateMb: number
}

/** A process and all that came from it, also what is in groups and sessions of its own. */
export async function familyOf(pid: number): Promise<number[]> {
  const parents = new Map<number, number>()
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') // it may have ended meanwhile
    const parent = Number(/\) \S (\d+)/.exec(stat)?.[1])
    if (parent > 0) parents.set(Number(name), parent)
  }
  const isOurs = (each: number): boolean => each === pid || (parents.has(each) && isOurs(parents.get(each) ?? 0))
  return [...parents.keys()].filter(isOurs)
}

/** Its program: the last part of the path of the first argument that is no option. */
export async function nameOf(pid: number): Promise<string> {
  const [command = '', ...args] = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  return basename(args.find((arg) => arg !== '' && !arg.startsWith('-')) ?? command)
}

/** Of all these processes together, as Linux counts it. */
export async function memoryOf(pids: readonly number[]): Promise<ProcessMemory> {
  const maps = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')))
  const sum = (name: string) =>
    maps.reduce((all, text) => all + Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0), 0) / 1024
  return { pssMb: sum('Pss'), rssMb: sum('Rss'), privateMb: sum('Private_Clean') + sum('Private_Dirty') }
}

/** A second with less work than this is quiet; the kernel counts in hundredths. */
const QUIET_TICKS = 5
const SECOND_MS = 1_000

/** Until the process had nothing to do for so many seconds on end. False: it was never quiet for that long within the limit. */
export async function untilQuiet(pid: number, { seconds, limitMs }: { seconds: number; limitMs: number }): Promise<boolean> {
  const ends = performance.now() + limitMs
  let last = await ticksOf(pid)
  for (let quiet = 0; quiet < seconds; ) {
    if (performance.now() > ends) return false
    await sleep(SECOND_MS)
    const now = await ticksOf(pid)
    quiet = now - last < QUIET_TICKS ? quiet + 1 : 0
    last = now
  }
  return true
}

/** CPU time of all its threads. */
async function ticksOf(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ')
  return Number(fields[11]) + Number(fields[12])
}
