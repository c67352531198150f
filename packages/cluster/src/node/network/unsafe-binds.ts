import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { type ListeningSocket, parseProcNetTcp } from './listening-sockets.ts'

/**
 * TCP sockets of the group and of its processes' descendants that listen on anything but loopback. With `podAddress`, which must then
 * be of one pod only, processes that left the group and lost their parent are found by their environment. By /proc on Linux, by
 * ps and lsof elsewhere; empty where neither tells.
 */
export async function unsafeBinds(groupId: number, podAddress: string | undefined): Promise<readonly string[]> {
  if (!existsSync('/proc/self/net/tcp')) return await unsafeBindsByLsof(groupId)
  return await byProc(groupId, podAddress, ({ loopback }) => !loopback)
}

/** Ports that the same processes listen on, on any address, in ascending order. */
export async function listeningPorts(groupId: number, podAddress: string | undefined): Promise<readonly number[]> {
  const places = existsSync('/proc/self/net/tcp') ? await byProc(groupId, podAddress, () => true) : await placesByLsof(groupId)
  return [...new Set(places.map((place) => Number(place.slice(place.lastIndexOf(':') + 1))))].toSorted((a, b) => a - b)
}

async function byProc(
  groupId: number,
  podAddress: string | undefined,
  counts: (socket: ListeningSocket) => boolean,
): Promise<readonly string[]> {
  const open = (await listeningSockets()).filter(counts)
  if (open.length === 0) return []
  const byInode = new Map(open.map((socket) => [socket.inode, socket]))
  const found = new Set<string>()
  for (const pid of await processesOf(groupId, podAddress)) {
    for (const inode of await socketInodes(pid)) {
      const socket = byInode.get(inode)
      if (socket !== undefined) found.add(socket.place)
    }
  }
  return [...found].toSorted()
}

/** Those that this user could have opened. */
async function listeningSockets(): Promise<readonly ListeningSocket[]> {
  const tables = await Promise.all(['/proc/self/net/tcp', '/proc/self/net/tcp6'].map((path) => readText(path)))
  const user = process.getuid?.() ?? 0
  return tables.flatMap((text) => parseProcNetTcp(text ?? '')).filter(({ uid }) => user === 0 || uid === user)
}

interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly group: number
}

async function processesOf(groupId: number, podAddress: string | undefined): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const entries = (await Promise.all(pids.map(readEntry))).filter((entry) => entry !== undefined)
  const strays = podAddress === undefined ? new Set<number>() : await withAddress(entries, podAddress)
  return familyOf(groupId, entries, strays)
}

/** Members of the group, `strays`, and whatever they started. */
function familyOf(groupId: number, entries: readonly ProcessEntry[], strays: ReadonlySet<number>): readonly number[] {
  const children = Map.groupBy(entries, ({ parent }) => parent)
  const family = new Set<number>()
  const add = (pid: number): void => {
    if (family.has(pid)) return
    family.add(pid)
    for (const child of children.get(pid) ?? []) add(child.pid)
  }
  for (const { pid, group } of entries) if (group === groupId || strays.has(pid)) add(pid)
  return [...family]
}

async function readEntry(pid: string): Promise<ProcessEntry | undefined> {
  const stat = await readText(`/proc/${pid}/stat`)
  // The program's name stands in parentheses and may hold anything, parentheses too.
  const [, parent, group] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
  return parent === undefined || group === undefined ? undefined : { pid: Number(pid), parent: Number(parent), group: Number(group) }
}

async function withAddress(entries: readonly ProcessEntry[], podAddress: string): Promise<ReadonlySet<number>> {
  const wanted = `THV_BIND_ADDRESS=${podAddress}`
  const found = new Set<number>()
  await Promise.all(
    entries.map(async ({ pid }) => {
      const environment = await readText(`/proc/${pid}/environ`)
      if (environment?.split('\0').includes(wanted)) found.add(pid)
    }),
  )
  return found
}

async function socketInodes(pid: number): Promise<readonly string[]> {
  const folder = `/proc/${pid}/fd`
  try {
    const names = await readdir(folder)
    const targets = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => ''))) // closed meanwhile
    return targets.map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]).filter((inode) => inode !== undefined)
  } catch {
    return [] // it has ended, or is another user's
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'latin1')
  } catch {
    return undefined // it has ended, or is another user's
  }
}

const COMMAND_LIMIT_MS = 5_000

/** For systems without /proc. */
export async function unsafeBindsByLsof(groupId: number): Promise<readonly string[]> {
  return (await placesByLsof(groupId)).filter((place) => !/^(127\.|\[::1\]|\[::ffff:127\.)/i.test(place))
}

async function placesByLsof(groupId: number): Promise<readonly string[]> {
  const table = await output('ps', ['-axo', 'pid=,ppid=,pgid='])
  const entries = table.split('\n').flatMap((line) => {
    const [pid, parent, group] = line.trim().split(/\s+/).map(Number)
    return pid && parent !== undefined && group !== undefined ? [{ pid, parent, group }] : []
  })
  const pids = familyOf(groupId, entries, new Set())
  if (pids.length === 0) return []
  const listing = await output('lsof', ['-nP', '-a', '-p', pids.join(','), '-iTCP', '-sTCP:LISTEN', '-Fn'])
  const places = listing.split('\n').flatMap((line) => (line.startsWith('n') ? [line.slice(1)] : []))
  return [...new Set(places)].toSorted()
}

/** Nothing when the program is missing or finds nothing, which lsof reports as a failure. */
function output(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: COMMAND_LIMIT_MS, maxBuffer: 16 << 20 }, (_error, stdout) => resolve(stdout))
  })
}
