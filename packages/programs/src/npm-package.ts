import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join, resolve, sep } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { Command } from './child-process.ts'
import { findProgram } from './find-program.ts'
import { withInstallLock } from './install-lock.ts'
import { installerEnvironment } from './program-environment.ts'
import { exists, INSTALL_LIMIT_MS, type InstallOptions, type PackageId, runInstaller } from './run-installer.ts'

/**
 * Installs a package once for all processes of this machine and says where. A folder that is there is complete: it was filled elsewhere
 * and then renamed. Throws `package_install_failed` or `program_missing`.
 */
export async function installNpmPackage(pkg: PackageId, options: InstallOptions): Promise<string> {
  const { dataDir, signal, log, limitMs = INSTALL_LIMIT_MS, clock = systemClock } = options
  const id = `${pkg.name}@${pkg.version}`
  // No name holds a plus, so no two packages share a folder; and none leads out of it.
  const folder = join(dataDir, 'npm', id.replace('/', '+'))
  if (await exists(folder)) return folder

  const install = async () => {
    if (await exists(folder)) return
    const staging = join(dataDir, 'npm', `.staging-${randomUUID()}`)
    try {
      await fill(staging, pkg, options)
      await rename(staging, folder).catch((error: unknown) => {
        if (!isCode(error, 'ENOTEMPTY', 'EEXIST')) throw error // another process was faster: its folder is as good
      })
    } finally {
      await rm(staging, { recursive: true, force: true })
    }
  }
  const onWait = (holder: string) => log.info(`waiting for ${holder}, which installs ${id}`)
  await withInstallLock(`${folder}.lock`, install, { limitMs, signal, clock, onWait })
  return folder
}

async function fill(folder: string, pkg: PackageId, options: InstallOptions): Promise<void> {
  const { env } = options
  const id = `${pkg.name}@${pkg.version}`
  const npm = await findProgram(['npm'], env['PATH'])
  if (npm === undefined)
    throw new ThvError('program_missing', `image: ${id} is installed by npm, which is not on PATH; install Node with npm`)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: { [pkg.name]: pkg.version } }))

  const inherited = installerEnvironment(env)
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-package-lock', '--omit=dev', '--loglevel=error']
  // npm runs on the Node that runs us, not on whatever comes first on PATH.
  const path = [dirname(process.execPath), inherited['PATH']].filter(Boolean).join(delimiter)
  await runInstaller(id, { command: { file: npm, args }, cwd: folder, env: { ...inherited, PATH: path } }, options)
}

interface Manifest {
  readonly version?: unknown
  readonly bin?: unknown
}

/** How to run an installed package: directly, without npm or npx between us and the server. */
export async function npmCommand(folder: string, pkg: PackageId, args: readonly string[]): Promise<Command> {
  const root = join(folder, 'node_modules', ...pkg.name.split('/'))
  const manifest = await readManifest(join(root, 'package.json'), pkg)
  const bin = resolve(root, chooseBin(pkg.name, manifest.bin))
  if (!bin.startsWith(root + sep)) throw new ThvError('image_invalid', `image: the program of ${pkg.name} lies outside of its package`)
  const nodeFlags = await nodeFlagsOf(bin)
  return nodeFlags === undefined ? { file: bin, args } : { file: process.execPath, args: [...nodeFlags, bin, ...args] }
}

async function readManifest(file: string, { name, version }: PackageId): Promise<Manifest> {
  try {
    const manifest = JSON.parse(await readFile(file, 'utf8')) as Manifest
    if (manifest.version === version) return manifest
    throw new ThvError('package_install_failed', `image: ${name} was installed in another version than ${version}`)
  } catch (cause) {
    if (!isCode(cause, 'ENOENT') && !(cause instanceof SyntaxError)) throw cause
    throw new ThvError('package_install_failed', `image: ${name} is not where npm should have put it; delete ${dirname(file)}`)
  }
}

/** As npx chooses: the only program, or the one called like the package without its scope. */
export function chooseBin(name: string, bin: unknown): string {
  if (typeof bin === 'string' && bin !== '') return bin
  const entries = Object.entries(typeof bin === 'object' && bin !== null ? bin : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  const bare = name.slice(name.indexOf('/') + 1)
  const chosen = new Set(entries.map(([, file]) => file)).size === 1 ? entries[0] : entries.find(([program]) => program === bare)
  if (chosen !== undefined) return chosen[1]
  const found = entries.length === 0 ? 'it has none' : `it has ${entries.map(([program]) => program).join(', ')}`
  throw new ThvError('image_invalid', `image: the package ${name} has no program to run: one called ${bare} is needed, and ${found}`)
}

/** Undefined for what is no Node script; that must be able to run by itself. */
async function nodeFlagsOf(bin: string): Promise<string[] | undefined> {
  const shebang = /^#!\s*(.*)/.exec(await firstLine(bin))?.[1]?.trim()
  if (shebang === undefined) return /\.[cm]?js$/.test(bin) ? [] : undefined
  const words = shebang.split(/\s+/)
  const at = words.findIndex((word) => word === 'node' || word.endsWith('/node'))
  return at < 0 ? undefined : words.slice(at + 1)
}

async function firstLine(file: string): Promise<string> {
  const handle = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(256), position: 0 })
    return buffer.toString('utf8', 0, bytesRead).split(/\r?\n/)[0] ?? ''
  } finally {
    await handle.close()
  }
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
