import { randomUUID } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { describeOwner, type LockOptions, takeBuildLock } from './build-lock.ts'
import { type BuildOptions, buildWithGo, goProblem } from './go-build.ts'
import { versions } from './kubernetes-version.ts'
import { type ProgramName, type ProgramSet, programSets } from './programs.ts'
import { goPlatform } from './run-go.ts'

/** Where the programs of a real Kubernetes are. Only those of the set that was asked for are sure to be there. */
export interface Binaries {
  readonly folder: string
  path(name: ProgramName): string
}

export interface Availability {
  readonly kind: 'ready' | 'buildable' | 'unavailable'
  readonly reason: string
}

export interface EnsureOptions {
  /** The programs of the API server alone when absent. */
  readonly set?: ProgramSet
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
  /** Replaced in tests. */
  readonly env?: NodeJS.ProcessEnv
  readonly build?: (workFolder: string, options: BuildOptions) => Promise<void>
  readonly lock?: Pick<LockOptions, 'waitLimitMs' | 'pollMs' | 'reportMs'>
}

/** Finds the programs, or builds those that are missing, once per machine; another run that builds meanwhile is waited for. */
export async function ensureBinaries(options: EnsureOptions = {}): Promise<Binaries> {
  const { set = 'api-server', env = process.env, signal, build = buildWithGo } = options
  const log = (line: string) => options.log?.(`kubernetes binaries: ${line}`)
  const found = findBinaries(set, env)
  if (found) return found
  const problem = build === buildWithGo ? goProblem() : undefined
  if (problem) throw new Error(`no Kubernetes binaries: ${problem}; ${remedy(set)}`)

  const folder = cacheFolder(env)
  const lock = await takeBuildLock(`${folder}.lock`, {
    ...options.lock,
    signal,
    onWait: (owner, waited) => log(`${describeOwner(owner)} is building them, waiting since ${Math.round(waited / 1000)} s`),
  })
  try {
    const finished = findBinaries(set, env)
    if (finished) return finished
    await removeLeftovers(folder)
    const programs = missingIn(folder, set)
    log(`building ${programs.join(', ')} of ${versions.kubernetes} for ${folder}; once per machine, about a minute of two cores each`)
    await buildInto(folder, programs, (workFolder) => build(workFolder, { programs, log, signal }))
    return binariesIn(folder)
  } finally {
    await lock.release()
  }
}

/** Without building. Throws when KUBEBUILDER_ASSETS is set but incomplete: what was asked for must not be replaced silently. */
export function findBinaries(set: ProgramSet, env: NodeJS.ProcessEnv = process.env): Binaries | undefined {
  const assets = env['KUBEBUILDER_ASSETS']
  if (assets) {
    const missing = missingIn(assets, set)
    if (missing.length > 0)
      throw new Error(`KUBEBUILDER_ASSETS names ${assets}, which lacks ${missing.join(', ')} (or they are not executable)`)
    return binariesIn(assets)
  }
  const folder = cacheFolder(env)
  return missingIn(folder, set).length === 0 ? binariesIn(folder) : undefined
}

export function binariesAvailability(set: ProgramSet, env: NodeJS.ProcessEnv = process.env): Availability {
  try {
    const found = findBinaries(set, env)
    if (found) return { kind: 'ready', reason: `found in ${found.folder}` }
  } catch (error) {
    return { kind: 'unavailable', reason: (error as Error).message }
  }
  const problem = goProblem()
  if (problem) return { kind: 'unavailable', reason: `${problem}; ${remedy(set)}` }
  return { kind: 'buildable', reason: `not in ${cacheFolder(env)} yet, Go can build them` }
}

/** Outside of the repository, so that every clone on the machine shares it, and keyed by version. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const { os, arch } = goPlatform()
  const key = `${versions.kubernetes}-etcd${versions.etcd.slice(1)}-coredns${versions.coredns.slice(1)}-${os}-${arch}`
  return join(cacheRoot(env), 'toolhive-ts', 'kubernetes', key)
}

function cacheRoot(env: NodeJS.ProcessEnv): string {
  const [own, xdg] = [env['THV_CACHE_DIR'], env['XDG_CACHE_HOME']]
  if (own) return resolve(own)
  // The XDG rules: a relative path counts as not set.
  return xdg && isAbsolute(xdg) ? xdg : join(env['HOME'] || homedir(), '.cache')
}

function remedy(set: ProgramSet): string {
  const { major, minor } = versions.go
  return `install Go ${major}.${minor} or newer, or let KUBEBUILDER_ASSETS name a folder with ${programSets[set].join(', ')}`
}

/** Each program appears with one rename, so it is either absent or complete; all of them after the whole build has succeeded. */
async function buildInto(folder: string, programs: readonly ProgramName[], build: (workFolder: string) => Promise<void>): Promise<void> {
  const workFolder = `${folder}.build-${process.pid}-${randomUUID()}`
  const built = join(workFolder, 'bin')
  await mkdir(built, { recursive: true })
  try {
    await build(workFolder)
    const missing = programs.filter((name) => !isProgram(join(built, name)))
    if (missing.length > 0) throw new Error(`the build did not make ${missing.join(', ')}`)
    await mkdir(folder, { recursive: true })
    for (const name of programs) await rename(join(built, name), join(folder, name))
  } finally {
    await rm(workFolder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Call it under the lock only: then every work folder belongs to a build that died. */
async function removeLeftovers(folder: string): Promise<void> {
  const prefixes = [`${basename(folder)}.build-`, `${basename(folder)}.lock.`]
  const names = await readdir(dirname(folder))
  const dead = names.filter((name) => prefixes.some((prefix) => name.startsWith(prefix)))
  for (const name of dead) await rm(join(dirname(folder), name), { recursive: true, force: true, maxRetries: 5 })
}

function binariesIn(folder: string): Binaries {
  return { folder, path: (name) => join(folder, name) }
}

function missingIn(folder: string, set: ProgramSet): ProgramName[] {
  return programSets[set].filter((name) => !isProgram(join(folder, name)))
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
