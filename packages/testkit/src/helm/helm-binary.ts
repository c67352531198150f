import { spawnSync } from 'node:child_process'
import type { Availability } from '../cluster/programs/binaries.ts'
import { goProblem } from '../cluster/programs/go-build.ts'
import { cachedProgramPath, ensureCachedProgram, isExecutable } from '../go-programs/cached-program.ts'
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

  return await ensureCachedProgram({
    path: cachedHelm(env),
    announcement: `${helmVersion} goes to ${cachedHelm(env)}; once per machine, about two minutes of two cores`,
    build,
    log,
    signal,
  })
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

function cachedHelm(env: NodeJS.ProcessEnv): string {
  return cachedProgramPath('helm', helmVersion, env)
}

const remedy = `install Go, or helm ${helmVersion}, or let THV_HELM name it`
