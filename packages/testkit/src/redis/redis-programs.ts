import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { systemPath } from '../cluster/node/node-packages.ts'
import { runCommand } from '../cluster/process/run-command.ts'

/** Why Redis cannot run here, or undefined when it can (perhaps after an installation). */
export function redisProblem(): string | undefined {
  if (programOf('redis-server') !== undefined) return undefined
  if (process.platform !== 'linux' || programOf('apt-get') === undefined)
    return 'Redis is not installed, and there is no apt-get to install it'
  return process.getuid?.() === 0 ? undefined : 'Redis is not installed, and installing it needs root'
}

/** The path of redis-server, which is also Sentinel; Debian's package is installed when there is none. */
export async function ensureRedis(): Promise<string> {
  const present = programOf('redis-server')
  if (present !== undefined) return present
  const problem = redisProblem()
  if (problem !== undefined) throw new Error(problem)
  console.error('redis: installing redis-server with apt-get')
  // In this run level Debian's scripts do not start a server of their own.
  const env = { ...process.env, PATH: systemPath, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const wait = ['-q', '-o', 'DPkg::Lock::Timeout=300']
  await runCommand('apt-get', [...wait, 'update'], { env, limitMs: 600_000 })
  await runCommand('apt-get', [...wait, 'install', '-y', '--no-install-recommends', 'redis-server'], { env, limitMs: 900_000 })
  const installed = programOf('redis-server')
  if (installed === undefined) throw new Error('apt-get installed redis-server, but it is not there')
  return installed
}

function programOf(name: string): string | undefined {
  const folders = [...systemPath.split(delimiter), ...(process.env['PATH'] ?? '').split(delimiter)]
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}
