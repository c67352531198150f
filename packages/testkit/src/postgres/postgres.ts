import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCertificate } from '../cluster/identity/certificate.ts'
import { type Daemon, startDaemon, within } from '../cluster/process/daemon.ts'
import { guardedFolderPrefix, type ProcessGuard, startGuard } from '../cluster/process/process-guard.ts'
import { runCommand } from '../cluster/process/run-command.ts'
import { startOnPort } from '../cluster/process/start-on-port.ts'
import { freezeAll, killAll, unfreezeAll } from './postgres-processes.ts'
import { ensurePostgres, unprivilegedUser } from './postgres-programs.ts'
import { createDatabase, type PostgresAccess, superuserSql, type TestDatabase } from './test-database.ts'

/** A PostgreSQL server with its own data, on its own port, which ends with this process however that ends. */
export interface TestPostgres extends AsyncDisposable {
  readonly access: PostgresAccess
  /** Belongs to the server's user; goes with the server. */
  readonly folder: string
  createDatabase(): Promise<TestDatabase>
  /** Ends the server as an administrator does, without waiting for clients. It can be started again. */
  halt(): Promise<void>
  /** As after a crash of the machine: nothing is written any more. */
  kill(): Promise<void>
  /** On the same port with the same data. */
  start(): Promise<void>
  restart(): Promise<void>
  /** All its processes stand still; connections stay open without an answer. */
  freeze(): void
  unfreeze(): void
  /** With `smallDiskMiB`: the folder of the disk, and another size for it. */
  readonly smallDisk: string
  resizeSmallDisk(mebibytes: number): Promise<void>
  stop(): Promise<void>
}

export interface PostgresOptions {
  /** Waits for the disk at every commit, as in production. */
  readonly fsync?: boolean
  readonly settings?: Readonly<Record<string, string>>
  /** A disk of this size for tablespaces, seen by the server alone. Needs root. */
  readonly smallDiskMiB?: number
}

const startLimitMs = 60_000
const haltLimitMs = 20_000

export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const programs = await ensurePostgres((line) => console.error(`postgres: ${line}`))
  const guard = startGuard()
  try {
    const place = await preparePlace(programs, guard)
    return await runServer(place, options)
  } catch (error) {
    await guard.close()
    throw error
  }
}

interface Place {
  readonly programs: string
  readonly guard: ProcessGuard
  readonly folder: string
  readonly data: string
  readonly sockets: string
  readonly caPem: string
  /** Command and arguments that give up root's rights. */
  readonly asUser: readonly string[]
}

async function preparePlace(programs: string, guard: ProcessGuard): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), guardedFolderPrefix))
  guard.removeAtEnd(folder)
  // Its user must get through to its own folders.
  await chmod(folder, 0o755)
  const [data, sockets] = [join(folder, 'data'), join(folder, 'sockets')]
  for (const path of [data, sockets]) await mkdir(path, { mode: 0o700 })
  const ca = createCertificate({ commonName: 'thv test database authority', ca: true })
  const server = createCertificate({ commonName: 'localhost', hosts: ['localhost'], issuer: ca })
  await writeFile(join(folder, 'server.crt'), server.certPem)
  await writeFile(join(folder, 'server.key'), server.keyPem, { mode: 0o600 })
  const user = unprivilegedUser()
  if (user !== undefined) await runCommand('chown', ['-R', user, data, sockets, join(folder, 'server.key')])
  const asUser = user === undefined ? [] : ['setpriv', `--reuid=${user}`, `--regid=${primaryGroup(user)}`, '--clear-groups', '--']
  const place = { programs, guard, folder, data, sockets, caPem: ca.certPem, asUser }
  const [command = '', ...args] = [
    ...asUser,
    join(programs, 'initdb'),
    '-D',
    data,
    '--no-sync',
    '-E',
    'UTF8',
    '--no-locale',
    '-U',
    'postgres',
  ]
  await runCommand(command, [...args, '--auth-local=trust', '--auth-host=scram-sha-256'], { limitMs: startLimitMs })
  return place
}

async function runServer(place: Place, options: PostgresOptions): Promise<TestPostgres> {
  const { programs, guard, folder, sockets, caPem } = place
  const accessAt = (port: number): PostgresAccess => ({
    host: 'localhost',
    address: '127.0.0.1',
    port,
    caPem,
    programs,
    socketFolder: sockets,
  })
  const launch = (port?: number) =>
    startOnPort({
      limitMs: startLimitMs,
      port,
      start: (chosen) => startServer(place, chosen, options),
      // The socket lies in our own folder, so its server is ours.
      ready: async (chosen) => (await superuserSql(accessAt(chosen), 'postgres', 'SELECT 1')) === '1',
    })
  const first = await launch()
  let daemon = first.daemon
  const access = accessAt(first.port)
  const end = async (signal: NodeJS.Signals) => {
    if (daemon.running) process.kill(daemon.pid, signal)
    if (!(await within(haltLimitMs, daemon.ended))) await killAll(daemon)
  }
  // SIGTERM would wait for every client to leave.
  const halt = () => end('SIGINT')
  const start = async () => {
    if (!daemon.running) daemon = (await launch(access.port)).daemon
  }
  const stop = async () => {
    // Without writing out data that is never read.
    await end('SIGQUIT')
    await guard.close()
  }
  return {
    access,
    folder,
    createDatabase: () => createDatabase(access),
    halt,
    kill: () => killAll(daemon),
    start,
    restart: async () => {
      await halt()
      await start()
    },
    freeze: () => freezeAll(daemon.pid),
    unfreeze: () => unfreezeAll(daemon.pid),
    smallDisk: smallDiskOf(folder),
    resizeSmallDisk: async (mebibytes) => {
      const remount = ['mount', '-o', `remount,size=${mebibytes}m`, smallDiskOf(folder)]
      await runCommand('nsenter', ['-m', '-t', String(daemon.pid), '--', ...remount])
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function startServer(place: Place, port: number, options: PostgresOptions): Promise<Daemon> {
  const { fsync = false, settings = {}, smallDiskMiB } = options
  const { programs, guard, folder, data, sockets, asUser } = place
  const all: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: sockets,
    ssl: 'on',
    ssl_cert_file: join(folder, 'server.crt'),
    ssl_key_file: join(folder, 'server.key'),
    max_connections: '100',
    // In files of the data folder, so that they go with it.
    dynamic_shared_memory_type: 'mmap',
    ...(fsync ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    ...settings,
  }
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const disk = smallDiskMiB === undefined ? [] : await onSmallDisk(smallDiskOf(folder), smallDiskMiB, data)
  const [command = '', ...args] = [...disk, ...asUser, join(programs, 'postgres'), '-D', data, '-p', String(port), ...flags]
  return await startDaemon('postgres', { command, args, logFile: join(folder, 'postgres.log'), guard })
}

/** Mounted where only the program and its children see it, so it ends with them. */
async function onSmallDisk(folder: string, mebibytes: number, like: string): Promise<string[]> {
  await mkdir(folder, { recursive: true })
  const mount = `mount -t tmpfs -o size=${mebibytes}m tmpfs ${folder} && chown --reference=${like} ${folder} && exec "$@"`
  return ['unshare', '-m', 'sh', '-c', mount, 'sh']
}

function smallDiskOf(folder: string): string {
  return join(folder, 'small-disk')
}

function primaryGroup(user: string): string {
  return execFileSync('id', ['-g', user], { encoding: 'utf8', timeout: 10_000 }).trim()
}
