import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Availability, cacheFolder } from '../cluster/programs/binaries.ts'
import { describeOwner, takeBuildLock } from '../cluster/programs/build-lock.ts'
import { goPlatform, goProblem } from '../cluster/programs/go-build.ts'
import { buildHelm, helmVersion } from './helm-build.ts'

export interface EnsureHelmOptions {
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
  /** Replaced in tests. */
  readonly env?: NodeJS.ProcessEnv
  readonly build?: typeof buildHelm
}

/** The path of a helm that runs: the one of this machine, or one that is built once; another run that builds meanwhile is waited for. */
export async function ensureHelm(options: EnsureHelmOptions = {}): Promise<string> {
  const { env = process.env, signal, build = buildHelm } = options
  const log = (line: string) => options.log?.(`helm: ${line}`)
  const found = findHelm(env)
  if (found) return found
  const problem = build === buildHelm ? goProblem() : undefined
  if (problem) throw new Error(`no helm: ${problem}; ${remedy}`)

  const path = cachedHelm(env)
  const lock = await takeBuildLock(`${path}.lock`, {
    signal,
    onWait: (owner, waited) => log(`${describeOwner(owner)} is building it, waiting since ${Math.round(waited / 1000)} s`),
  })
  try {
    if (isExecutable(path)) return path
    await removeLeftovers(path)
    log(`${helmVersion} goes to ${path}; once per machine, about two minutes of two cores`)
    const workFolder = `${path}.build-${process.pid}-${randomUUID()}`
    try {
      await mkdir(workFolder, { recursive: true })
      // The program appears with one rename: it is either absent or complete.
      await rename(await build(workFolder, { log, signal }), path)
    } finally {
      await rm(workFolder, { recursive: true, force: true, maxRetries: 5 })
    }
    return path
  } finally {
    await lock.release()
  }
}

/** Without building. Throws when THV_HELM names something that cannot be run: what was asked for must not be replaced silently. */
export function findHelm(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const asked = env['THV_HELM']
  if (asked) {
    if (!isExecutable(asked)) throw new Error(`THV_HELM names ${asked}, which is no program`)
    return asked
  }
  const path = cachedHelm(env)
  if (isExecutable(path)) return path
  const installed = spawnSync('helm', ['version', '--template', '{{.Version}}'], { encoding: 'utf8', env, timeout: 20_000 })
  return installed.status === 0 && isNewEnough(installed.stdout) ? 'helm' : undefined
}

export function helmAvailability(env: NodeJS.ProcessEnv = process.env): Availability {
  try {
    const found = findHelm(env)
    if (found) return { kind: 'ready', reason: `found as ${found}` }
  } catch (error) {
    return { kind: 'unavailable', reason: (error as Error).message }
  }
  const problem = goProblem()
  if (problem) return { kind: 'unavailable', reason: `no helm: ${problem}; ${remedy}` }
  return { kind: 'buildable', reason: `not in ${cachedHelm(env)} yet, Go can build it` }
}

/** Rendering is the same in all of 3 from the minor version on that the charts were written with; 4 is another program. */
export function isNewEnough(version: string): boolean {
  const [, minor] = /^v3\.(\d+)\./.exec(version) ?? []
  return minor !== undefined && Number(minor) >= Number(helmVersion.split('.')[1])
}

/** Beside the Kubernetes binaries, so that every clone on the machine shares it. */
function cachedHelm(env: NodeJS.ProcessEnv): string {
  const { os, arch } = goPlatform()
  return join(dirname(dirname(cacheFolder(env))), 'helm', `helm-${helmVersion}-${os}-${arch}`)
}

const remedy = `install Go, or helm ${helmVersion}, or let THV_HELM name it`

/** Call it under the lock only: then every work folder belongs to a build that died. */
async function removeLeftovers(path: string): Promise<void> {
  const names = await readdir(dirname(path))
  const dead = names.filter((name) => name.startsWith(`${basename(path)}.build-`))
  for (const name of dead) await rm(join(dirname(path), name), { recursive: true, force: true, maxRetries: 5 })
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
