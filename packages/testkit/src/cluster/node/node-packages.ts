import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { runCommand } from '../process/run-command.ts'

/** Some systems leave these out of a user's PATH. */
export const systemPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(delimiter)

/** Programs that a node takes from the system, by Debian's package. */
const programs: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  ctr: 'containerd',
  runc: 'runc',
  iptables: 'iptables',
  conntrack: 'conntrack',
  ip: 'iproute2',
  nsenter: 'util-linux',
  unshare: 'util-linux',
}
const pluginPackage = 'containernetworking-plugins'
const pluginFolders = ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni']

/** Why no node can run here, or undefined when it can (perhaps after an installation). */
export function nodeProblem(): string | undefined {
  if (process.platform !== 'linux') return 'a node needs Linux'
  if (process.getuid?.() !== 0) return 'a node needs root: namespaces, control groups and network devices are made'
  const missing = missingPackages()
  if (missing.length > 0 && !findProgram('apt-get')) return `${missing.join(', ')} must be installed, and there is no apt-get`
  return undefined
}

/** Debian's containerd, runc and network plugins, installed when they are missing. */
export async function ensureNodePackages(log: (line: string) => void): Promise<void> {
  const missing = missingPackages()
  if (missing.length === 0) return
  log(`installing ${missing.join(', ')} with apt-get, about a minute`)
  const env = { ...process.env, PATH: systemPath, DEBIAN_FRONTEND: 'noninteractive' }
  // The lock of another apt-get is waited for.
  const wait = ['-q', '-o', 'DPkg::Lock::Timeout=300']
  await runCommand('apt-get', [...wait, 'update'], { env, limitMs: 600_000 })
  await runCommand('apt-get', [...wait, 'install', '-y', '--no-install-recommends', ...missing], { env, limitMs: 900_000 })
  const still = missingPackages()
  if (still.length > 0) throw new Error(`apt-get installed ${missing.join(', ')}, but there is still nothing of ${still.join(', ')}`)
}

export function cniPluginFolder(): string | undefined {
  return pluginFolders.find((folder) => ['bridge', 'host-local', 'portmap', 'loopback'].every((name) => existsSync(join(folder, name))))
}

function missingPackages(): string[] {
  const absent = Object.entries(programs).flatMap(([program, name]) => (findProgram(program) ? [] : [name]))
  return [...new Set([...absent, ...(cniPluginFolder() ? [] : [pluginPackage])])]
}

function findProgram(name: string): string | undefined {
  return systemPath
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}
