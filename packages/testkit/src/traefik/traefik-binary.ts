import type { Availability } from '../cluster/programs/binaries.ts'
import { goProblem } from '../cluster/programs/go-build.ts'
import { cachedProgramPath, ensureCachedProgram, isExecutable } from '../go-programs/cached-program.ts'
import { buildTraefik, traefikGo, traefikVersion } from './traefik-build.ts'

export interface EnsureTraefikOptions {
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
  /** Replaced in tests. */
  readonly env?: NodeJS.ProcessEnv
  readonly build?: typeof buildTraefik
}

/** The path of a Traefik that runs: the one that THV_TRAEFIK names, or one that is built once per machine. */
export async function ensureTraefik(options: EnsureTraefikOptions = {}): Promise<string> {
  const { env = process.env, signal, build = buildTraefik } = options
  const found = findTraefik(env)
  if (found) return found
  const problem = build === buildTraefik ? goProblem(traefikGo) : undefined
  if (problem) throw new Error(`no Traefik: ${problem}; ${remedy}`)
  const path = cachedTraefik(env)
  return await ensureCachedProgram({
    path,
    announcement: `${traefikVersion} goes to ${path}; once per machine, about six minutes of two cores`,
    build,
    log: (line) => options.log?.(`traefik: ${line}`),
    signal,
  })
}

/** Without building. Throws when THV_TRAEFIK names something that cannot be run. */
export function findTraefik(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const asked = env['THV_TRAEFIK']
  if (asked && !isExecutable(asked)) throw new Error(`THV_TRAEFIK names ${asked}, which is no program`)
  if (asked) return asked
  const path = cachedTraefik(env)
  return isExecutable(path) ? path : undefined
}

export function traefikAvailability(env: NodeJS.ProcessEnv = process.env): Availability {
  try {
    const found = findTraefik(env)
    if (found) return { kind: 'ready', reason: `found as ${found}` }
  } catch (error) {
    return { kind: 'unavailable', reason: (error as Error).message }
  }
  const problem = goProblem(traefikGo)
  if (problem) return { kind: 'unavailable', reason: `no Traefik: ${problem}; ${remedy}` }
  return { kind: 'buildable', reason: `not in ${cachedTraefik(env)} yet, Go can build it` }
}

function cachedTraefik(env: NodeJS.ProcessEnv): string {
  return cachedProgramPath('traefik', traefikVersion, env)
}

const remedy = `install Go ${traefikGo.major}.${traefikGo.minor} or newer, or let THV_TRAEFIK name Traefik ${traefikVersion}`
