import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, startDaemon } from '../process/daemon.ts'
import type { ProcessGuard } from '../process/process-guard.ts'
import { type CommandOptions, runCommand } from '../process/run-command.ts'
import type { Binaries } from '../programs/binaries.ts'
import { cniPluginFolder, systemPath } from './node-packages.ts'

/**
 * Where a node lives: namespaces of its own for processes, mounts, network and host name, joined to the host by one pair of network
 * devices. Its first process holds all of it; with that one the system ends every container and takes every mount and device away.
 */
export interface NodePlace {
  readonly holder: Daemon
  /** The first process inside, by its id outside. */
  readonly initPid: number
  /** Inside: the folder with the programs, one with the network plugins. The folder of the place itself has its path on both sides. */
  readonly programs: string
  readonly plugins: string
  readonly folder: string
  /** Starts a program inside that keeps running. */
  start(name: string, options: { command: string; args: readonly string[]; logFile: string; guard: ProcessGuard }): Promise<Daemon>
}

export const nodeNetwork = {
  /** The host's end; servers of a test that pods call listen here. */
  host: '10.197.0.1',
  node: '10.197.0.2',
  prefix: 30,
  services: { range: '10.197.64.0/20', first: '10.197.64.1' },
  pods: '10.197.128.0/22',
} as const

export const nodeName = 'thv-node'
/** Below each hierarchy of control groups. */
export const nodeControlGroup = 'thv-testkit-node'

const device = 'thv-node0'
/** Folders that kubelet, containerd and the plugins write to, some under fixed names. */
const covered = ['/var/lib', '/var/log', '/run', '/opt']
/** The kubelet sets these for the whole machine. Not every kernel has all of them. */
export const nodeSettings = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
].filter((name) => existsSync(`/proc/sys/${name}`))
const leftoverLimitMs = 60_000

export async function makeNodePlace({
  guard,
  folder,
  binaries,
}: {
  guard: ProcessGuard
  folder: string
  binaries: Binaries
}): Promise<NodePlace> {
  const hidden = covered.find((path) => `${folder}/`.startsWith(`${path}/`))
  if (hidden) throw new Error(`a node covers ${hidden}, so its folder cannot be ${folder}: let TMPDIR name another`)
  await removeLeftovers()
  for (const name of nodeSettings) guard.restoreAtEnd(`/proc/sys/${name}`, readFileSync(`/proc/sys/${name}`, 'utf8').trim())
  await makeControlGroups(guard)
  const programs = join(folder, 'bin')
  const plugins = join(folder, 'cni-bin')
  for (const path of [programs, plugins]) await mkdir(path)
  const script = await writeInit(folder, [[binaries.folder, programs], [cniPluginFolder() ?? '', plugins], ...(await coverFolders(folder))])
  const holder = await startDaemon('node', {
    command: 'unshare',
    args: [
      '--fork',
      '--kill-child',
      '--pid',
      '--mount',
      '--net',
      '--uts',
      '--mount-proc',
      '--',
      '/bin/sh',
      script,
      join(programs, 'pause'),
    ],
    logFile: join(folder, 'init.log'),
    guard,
  })
  const initPid = await initProcess(holder)
  const place: NodePlace = {
    holder,
    initPid,
    programs,
    plugins,
    folder,
    start: (name, { command, args, ...rest }) =>
      startDaemon(name, { ...rest, command: 'nsenter', args: [...enterArguments(initPid), command, ...args] }),
  }
  await connect(initPid)
  return place
}

/** Runs a program inside, to its end. Any process of root on this machine may, also one that did not start the node. */
export function runInNode(initPid: number, command: readonly string[], options?: CommandOptions): Promise<string> {
  return runCommand('nsenter', [...enterArguments(initPid), ...command], options)
}

function enterArguments(initPid: number): string[] {
  return ['--target', String(initPid), '--pid', '--mount', '--net', '--uts', '--', '/usr/bin/env', `PATH=${systemPath}`]
}

async function coverFolders(folder: string): Promise<[string, string][]> {
  const pairs: [string, string][] = []
  for (const path of covered) {
    const own = join(folder, path.replaceAll('/', '_'))
    await mkdir(own)
    if (existsSync(path)) pairs.push([own, path])
  }
  return pairs
}

/** The mounts spread to the containers (rshared), not to the host: `unshare` has cut that tie. */
async function writeInit(folder: string, binds: readonly (readonly [string, string])[]): Promise<string> {
  const path = join(folder, 'init.sh')
  const lines = ['set -e', 'mount --make-rshared /', ...binds.map(([from, to]) => `mount --bind '${from}' '${to}'`)]
  await writeFile(path, [...lines, `hostname ${nodeName}`, 'exec "$1"', ''].join('\n'))
  return path
}

/** The process id, seen from here, of the first process inside, once it has mounted everything. */
async function initProcess(holder: Daemon): Promise<number> {
  const deadline = performance.now() + 20_000
  while (holder.running && performance.now() < deadline) {
    const child = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim()
    if (child !== '' && readFileSync(`/proc/${child}/comm`, 'utf8').trim() === 'pause') return Number(child)
    await sleep(20)
  }
  throw new Error(`the namespaces of the node could not be made: ${holder.logTail()}`)
}

async function connect(initPid: number): Promise<void> {
  const { host, node, prefix, services, pods } = nodeNetwork
  const ip = (...args: string[]) => runCommand('ip', args)
  const inside = (...args: string[]) => runInNode(initPid, ['ip', ...args])
  await ip('link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(initPid))
  await ip('address', 'add', `${host}/${prefix}`, 'dev', device)
  await ip('link', 'set', device, 'up')
  await inside('link', 'set', 'lo', 'up')
  await inside('address', 'add', `${node}/${prefix}`, 'dev', 'eth0')
  await inside('link', 'set', 'eth0', 'up')
  for (const range of [services.range, pods]) await ip('route', 'add', range, 'via', node)
  // No default route: nothing inside reaches beyond this machine. Services need some route before their address is translated.
  await inside('route', 'add', services.range, 'dev', 'eth0')
  await runInNode(initPid, ['sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward'])
}

async function makeControlGroups(guard: ProcessGuard): Promise<void> {
  for (const folder of controlGroupFolders()) {
    guard.removeControlGroupAtEnd(folder)
    await mkdir(folder, { recursive: true })
  }
}

/** One folder, or one in each hierarchy where the system has the older control groups. */
export function controlGroupFolders(): string[] {
  const root = '/sys/fs/cgroup'
  if (existsSync(join(root, 'cgroup.controllers'))) return [join(root, nodeControlGroup)]
  const hierarchies = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return hierarchies.map(({ name }) => join(root, name, nodeControlGroup))
}

/** The guard of a run that was killed may still be at it; the lock keeps others from using the names. */
async function removeLeftovers(): Promise<void> {
  const deadline = performance.now() + leftoverLimitMs
  const left = () => [...controlGroupFolders(), `/sys/class/net/${device}`].filter((path) => existsSync(path))
  while (left().length > 0) {
    if (performance.now() > deadline) throw new Error(`an earlier node has left ${left().join(', ')}: end its processes and remove them`)
    await sleep(200)
  }
}
