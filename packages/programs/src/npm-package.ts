import { randomUUID } from 'node:crypto'
import { access, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join, resolve, sep } from 'node:path'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { type Command, startChild } from './child-process.ts'
import { findProgram } from './find-program.ts'
import { withInstallLock } from './install-lock.ts'
import type { ProcessGuard } from './process-guard.ts'
import { type Env, installerEnvironment } from './program-environment.ts'
import type { ProgramLog } from './program-log.ts'

export interface NpmPackage {
  readonly name: string
  /** Exact. */
  readonly version: string
}

export interface InstallOptions {
  readonly dataDir: string
  readonly env: Env
  readonly guard: ProcessGuard
  readonly log: ProgramLog
  readonly signal: AbortSignal
  readonly clock?: Clock
  readonly limitMs?: number
}

const LIMIT_MS = 10 * 60_000
const PROGRESS_MS = 15_000

/**
 * Installs a package once for all processes of this machine and says where. A folder that is there is complete: it was filled elsewhere
 * and then renamed. Throws `package_install_failed` or `program_missing`.
 */
export async function installNpmPackage(pkg: NpmPackage, options: InstallOptions): Promise<string> {
  const { dataDir, signal, log, limitMs = LIMIT_MS, clock = systemClock } = options
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

async function fill(folder: string, pkg: NpmPackage, options: InstallOptions): Promise<void> {
  const { env, guard, log, signal, clock = systemClock, limitMs = LIMIT_MS } = options
  const id = `${pkg.name}@${pkg.version}`
  const npm = await findProgram(['npm'], env['PATH'])
  if (npm === undefined)
    throw new ThvError('program_missing', `image: ${id} is installed by npm, which is not on PATH; install Node with npm`)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: { [pkg.name]: pkg.version } }))

  log.info(`installing ${id}`)
  const startedAt = clock.monotonic()
  const seconds = () => Math.round((clock.monotonic() - startedAt) / 1_000)
  const inherited = installerEnvironment(env)
  const child = await startChild(
    { file: npm, args: ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-package-lock', '--omit=dev', '--loglevel=error'] },
    {
      name: 'npm',
      cwd: folder,
      // npm runs on the Node that runs us, not on whatever comes first on PATH.
      env: { ...inherited, PATH: [dirname(process.execPath), inherited['PATH']].filter(Boolean).join(delimiter) },
      stdio: 'log',
      guard,
      log,
      clock,
    },
  )
  const stop = () => void child.stop()
  signal.addEventListener('abort', stop, { once: true })
  const limit = clock.setTimer(limitMs, stop)
  const progress = setInterval(() => log.info(`still installing ${id}`, { seconds: seconds() }), PROGRESS_MS)
  const end = await child.ended.finally(() => {
    signal.removeEventListener('abort', stop)
    limit.cancel()
    clearInterval(progress)
  })
  signal.throwIfAborted()
  if (end.code !== 0)
    throw new ThvError('package_install_failed', `image: ${id} could not be installed: ${end.message}; the log has the rest`)
  log.info(`installed ${id}`, { seconds: seconds() })
}

interface Manifest {
  readonly version?: unknown
  readonly bin?: unknown
}

/** How to run an installed package: directly, without npm or npx between us and the server. */
export async function npmCommand(folder: string, pkg: NpmPackage, args: readonly string[]): Promise<Command> {
  const root = join(folder, 'node_modules', ...pkg.name.split('/'))
  const manifest = await readManifest(join(root, 'package.json'), pkg)
  const bin = resolve(root, chooseBin(pkg.name, manifest.bin))
  if (!bin.startsWith(root + sep)) throw new ThvError('image_invalid', `image: the program of ${pkg.name} lies outside of its package`)
  const nodeFlags = await nodeFlagsOf(bin)
  return nodeFlags === undefined ? { file: bin, args } : { file: process.execPath, args: [...nodeFlags, bin, ...args] }
}

async function readManifest(file: string, { name, version }: NpmPackage): Promise<Manifest> {
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

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
