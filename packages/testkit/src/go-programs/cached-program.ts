import { randomUUID } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { cacheFolder } from '../cluster/programs/binaries.ts'
import { describeOwner, takeBuildLock } from '../cluster/programs/build-lock.ts'
import { type GoBuildOptions, goPlatform } from '../cluster/programs/run-go.ts'

export interface CachedProgramOptions extends GoBuildOptions {
  readonly path: string
  /** Logged when the build begins. */
  readonly announcement: string
  /** Builds in a throw-away folder and returns where the program lies. */
  readonly build: (workFolder: string, options: GoBuildOptions) => Promise<string>
}

/** Beside the Kubernetes binaries, so that every clone on the machine shares it. */
export function cachedProgramPath(name: string, version: string, env: NodeJS.ProcessEnv): string {
  const { os, arch } = goPlatform()
  return join(dirname(dirname(cacheFolder(env))), name, `${name}-${version}-${os}-${arch}`)
}

/** Builds the program unless it is there; another run that builds it meanwhile is waited for. */
export async function ensureCachedProgram({ path, announcement, build, log, signal }: CachedProgramOptions): Promise<string> {
  if (isExecutable(path)) return path
  const lock = await takeBuildLock(`${path}.lock`, {
    signal,
    onWait: (owner, waited) => log(`${describeOwner(owner)} is building it, waiting since ${Math.round(waited / 1000)} s`),
  })
  try {
    if (isExecutable(path)) return path
    await removeLeftovers(path)
    log(announcement)
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

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Call it under the lock only: then every work folder belongs to a build that died. */
async function removeLeftovers(path: string): Promise<void> {
  const names = await readdir(dirname(path))
  const dead = names.filter((name) => name.startsWith(`${basename(path)}.build-`))
  for (const name of dead) await rm(join(dirname(path), name), { recursive: true, force: true, maxRetries: 5 })
}
