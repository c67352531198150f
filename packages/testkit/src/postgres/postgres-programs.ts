import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { systemPath } from '../cluster/node/node-packages.ts'
import { runCommand } from '../cluster/process/run-command.ts'

const debianFolder = '/usr/lib/postgresql'
const needed = ['initdb', 'postgres', 'psql']
/** Read by Debian's scripts while the package is set up. */
const clusterSetting = '/etc/postgresql-common/createcluster.d/thv-testkit.conf'

/** Why PostgreSQL cannot run here, or undefined when it can (perhaps after an installation). */
export function postgresProblem(): string | undefined {
  if (postgresFolder() !== undefined) return undefined
  if (process.platform !== 'linux' || !onPath('apt-get')) return 'PostgreSQL is not installed, and there is no apt-get to install it'
  if (process.getuid?.() !== 0) return 'PostgreSQL is not installed, and installing it needs root'
  return undefined
}

/** The folder with initdb, postgres and psql; Debian's package is installed when there is none. */
export async function ensurePostgres(log: (line: string) => void): Promise<string> {
  const present = postgresFolder()
  if (present !== undefined) return present
  const problem = postgresProblem()
  if (problem !== undefined) throw new Error(problem)
  log('installing postgresql with apt-get, about a minute')
  await installPostgres()
  const folder = postgresFolder()
  if (folder === undefined) throw new Error('apt-get installed postgresql, but its programs are not there')
  return folder
}

/** PostgreSQL refuses to run as root: whose rights it gets instead, or undefined where we are not root ourselves. */
export function unprivilegedUser(): string | undefined {
  if (process.getuid?.() !== 0) return undefined
  try {
    execFileSync('id', ['-u', 'postgres'], { stdio: 'ignore', timeout: 10_000 })
    return 'postgres'
  } catch {
    return 'nobody' // a PostgreSQL that came without Debian's package brings no user
  }
}

async function installPostgres(): Promise<void> {
  const env = { ...process.env, PATH: systemPath, DEBIAN_FRONTEND: 'noninteractive' }
  // The lock of another apt-get is waited for.
  const wait = ['-q', '-o', 'DPkg::Lock::Timeout=300']
  // The package would make and start a server of its own.
  mkdirSync(join(clusterSetting, '..'), { recursive: true })
  writeFileSync(clusterSetting, 'create_main_cluster = false\n')
  try {
    await runCommand('apt-get', [...wait, 'update'], { env, limitMs: 600_000 })
    await runCommand('apt-get', [...wait, 'install', '-y', '--no-install-recommends', 'postgresql'], { env, limitMs: 900_000 })
  } finally {
    rmSync(clusterSetting, { force: true })
  }
}

/** Debian keeps the programs of each version out of the PATH; the newest is taken. */
function postgresFolder(): string | undefined {
  const debian = existsSync(debianFolder)
    ? readdirSync(debianFolder)
        .toSorted((a, b) => Number(b) - Number(a))
        .map((version) => join(debianFolder, version, 'bin'))
    : []
  const path = (process.env['PATH'] ?? '').split(delimiter)
  return [...debian, ...path].find((folder) => needed.every((name) => existsSync(join(folder, name))))
}

function onPath(name: string): boolean {
  return systemPath.split(delimiter).some((folder) => existsSync(join(folder, name)))
}
