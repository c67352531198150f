import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemPath } from '../cluster/node/node-packages.ts'
import { runCommand } from '../cluster/process/run-command.ts'

/** Debian's package of a shell, installed when it is missing (as root). Returns the path of its program. */
export async function ensureShell(name: 'zsh' | 'fish'): Promise<string> {
  const found = () =>
    systemPath
      .split(':')
      .map((folder) => join(folder, name))
      .find((path) => existsSync(path))
  if (found() === undefined) {
    const env = { ...process.env, PATH: systemPath, DEBIAN_FRONTEND: 'noninteractive' }
    // The lock of another apt-get is waited for.
    const wait = ['-q', '-o', 'DPkg::Lock::Timeout=300']
    await runCommand('apt-get', [...wait, 'update'], { env, limitMs: 600_000 })
    await runCommand('apt-get', [...wait, 'install', '-y', '--no-install-recommends', name], { env, limitMs: 600_000 })
  }
  const path = found()
  if (path === undefined) throw new Error(`apt-get installed ${name}, but its program is not there`)
  return path
}
