import { randomUUID } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { describeOwner, type LockOptions, takeBuildLock } from './build-lock.ts'
import { type BinaryName, type BuildOptions, binaryNames, buildWithGo, goPlatform, goProblem } from './go-build.ts'
import { versions } from './kubernetes-version.ts'

/** The programs of a real Kubernetes API server on this machine. */
export interface Binaries {
  readonly folder: string
  readonly etcd: string
  readonly kubeApiserver: string
  readonly kubectl: string
}

export interface Availability {
  readonly kind: 'ready' | 'buildable' | 'unavailable'
  readonly reason: string
}

export interface EnsureOptions {
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
  /** Replaced in tests. */
  readonly env?: NodeJS.ProcessEnv
  readonly build?: (workFolder: string, options: BuildOptions) => Promise<void>
  readonly lock?: Pick<LockOptions, 'waitLimitMs' | 'pollMs' | 'reportMs'>
}

/** Finds the programs, or builds them once per machine; another run that builds meanwhile is waited for. */
export async function ensureBinaries(options: EnsureOptions = {}): Promise<Binaries> {
  const { env = process.env, signal, build = buildWithGo } = options
  const log = (line: string) => options.log?.(`kubernetes binaries: ${line}`)
  const found = findBinaries(env)
  if (found) return found
  const problem = build === buildWithGo ? goProblem() : undefined
  if (problem) throw new Error(`no Kubernetes binaries: ${problem}; ${remedy}`)

  const folder = cacheFolder(env)
  const lock = await takeBuildLock(`${folder}.lock`, {
    ...options.lock,
    signal,
    onWait: (owner, waited) => log(`${describeOwner(owner)} is building them, waiting since ${Math.round(waited / 1000)} s`),
  })
  try {
    const finished = findBinaries(env)
    if (finished) return finished
    await removeLeftovers(folder)
    log(`${versions.kubernetes} with etcd ${versions.etcd} go to ${folder}; once per machine, about ten minutes of two cores`)
    await buildInto(folder, (workFolder) => build(workFolder, { log, signal }))
    const built = findBinaries(env)
    if (!built) throw new Error(`the build left ${missingIn(folder).join(', ')} out of ${folder}`)
    return built
  } finally {
    await lock.release()
  }
}

/** Without building. Throws when KUBEBUILDER_ASSETS is set but incomplete: what was asked for must not be replaced silently. */
export function findBinaries(env: NodeJS.ProcessEnv = process.env): Binaries | undefined {
  const assets = env['KUBEBUILDER_ASSETS']
  if (assets) {
    const missing = missingIn(assets)
    if (missing.length > 0)
      throw new Error(`KUBEBUILDER_ASSETS names ${assets}, which lacks ${missing.join(', ')} (or they are not executable)`)
    return binariesIn(assets)
  }
  const folder = cacheFolder(env)
  return missingIn(folder).length === 0 ? binariesIn(folder) : undefined
}

export function binariesAvailability(env: NodeJS.ProcessEnv = process.env): Availability {
  try {
    const found = findBinaries(env)
    if (found) return { kind: 'ready', reason: `found in ${found.folder}` }
  } catch (error) {
    return { kind: 'unavailable', reason: (error as Error).message }
  }
  const problem = goProblem()
  if (problem) return { kind: 'unavailable', reason: `${problem}; ${remedy}` }
  return { kind: 'buildable', reason: `not in ${cacheFolder(env)} yet, Go can build them` }
}

/** Outside of the repository, so that every clone on the machine shares it, and keyed by version. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const { os, arch } = goPlatform()
  const key = `${versions.kubernetes}-etcd${versions.etcd.slice(1)}-${os}-${arch}`
  return join(cacheRoot(env), 'toolhive-ts', 'kubernetes', key)
}

function cacheRoot(env: NodeJS.ProcessEnv): string {
  const [own, xdg] = [env['THV_CACHE_DIR'], env['XDG_CACHE_HOME']]
  if (own) return resolve(own)
  // The XDG rules: a relative path counts as not set.
  return xdg && isAbsolute(xdg) ? xdg : join(env['HOME'] || homedir(), '.cache')
}

const remedy = `install Go ${versions.go.major}.${versions.go.minor} or newer, or let KUBEBUILDER_ASSETS name a folder with ${binaryNames.join(', ')}`

/** The folder appears with one rename, so it is either absent or complete. */
async function buildInto(folder: string, build: (workFolder: string) => Promise<void>): Promise<void> {
  const workFolder = `${folder}.build-${process.pid}-${randomUUID()}`
  await mkdir(workFolder, { recursive: true })
  try {
    await build(workFolder)
    const missing = missingIn(join(workFolder, 'bin'))
    if (missing.length > 0) throw new Error(`the build did not make ${missing.join(', ')}`)
    await rename(join(workFolder, 'bin'), folder)
  } finally {
    await rm(workFolder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Call it under the lock only: then every work folder and every incomplete result belongs to a build that died. */
async function removeLeftovers(folder: string): Promise<void> {
  const prefixes = [`${basename(folder)}.build-`, `${basename(folder)}.lock.`]
  const names = await readdir(dirname(folder))
  const dead = names.filter((name) => name === basename(folder) || prefixes.some((prefix) => name.startsWith(prefix)))
  for (const name of dead) await rm(join(dirname(folder), name), { recursive: true, force: true, maxRetries: 5 })
}

function binariesIn(folder: string): Binaries {
  return { folder, etcd: join(folder, 'etcd'), kubeApiserver: join(folder, 'kube-apiserver'), kubectl: join(folder, 'kubectl') }
}

function missingIn(folder: string): BinaryName[] {
  return binaryNames.filter((name) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return false
    } catch {
      return true
    }
  })
}
