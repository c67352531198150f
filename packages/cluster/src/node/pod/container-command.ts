import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageProgram } from '../images/image-resolver.ts'
import { withBindGuard } from '../network/bind-guard.ts'
import type { PodPlace } from '../network/pod-network.ts'
import { findProgram } from '../process/find-program.ts'
import type { HostCommand } from '../process/shared-processes.ts'
import { expand } from '../values/expansion.ts'
import { mountPlace } from '../volumes/pod-volumes.ts'
import { ConfigError } from './config-error.ts'
import { hostCommand } from './host-command.ts'
import { pathRewriter } from './mount-paths.ts'
import type { ContainerSpec } from './pod-spec.ts'

/** Everything that is needed to start a program in a container's surroundings: its own, or one of a probe. */
export interface ContainerSurroundings {
  /** Variables that the spec or the platform asks for; `env` has those of the image too. */
  readonly wanted: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Puts mount paths where they really lie, and variables in. */
  readonly place: (text: string) => string
}

export interface SurroundingsInput {
  readonly container: ContainerSpec
  readonly program: ImageProgram
  readonly podPlace: PodPlace
  /** Variables of the spec. */
  readonly wanted: Readonly<Record<string, string>>
  /** The container's root folder. */
  readonly root: string
  /** A folder of the pod's own for HOME and temporary files. */
  readonly home: string
}

/**
 * The environment begins empty: of the user's own variables, which may hold secrets, only PATH and LANG get in. HOME and TMPDIR lie in
 * the pod's folder.
 */
export async function containerSurroundings(input: SurroundingsInput): Promise<ContainerSurroundings> {
  const { container, program, podPlace, wanted, root, home } = input
  const rewrite = pathRewriter(container, root)
  const hasTmp = container.volumeMounts?.some((mount) => mountPlace(mount) === '/tmp')
  await mkdir(join(home, 'tmp'), { recursive: true, mode: 0o700 })
  const given = Object.fromEntries(Object.entries({ ...program.env, ...wanted }).map(([name, value]) => [name, rewrite(value)]))
  const env: Record<string, string> = {
    PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    LANG: process.env['LANG'] ?? 'C.UTF-8',
    HOME: home,
    TMPDIR: hasTmp ? join(root, 'tmp') : join(home, 'tmp'),
    ...withBindGuard(given, podPlace.env),
    ...(program.own && { THV_ROOT: root }),
  }
  // A folder of the pod, never one of the machine's: a program writes where it stands. As from /, `..` leads nowhere from the root.
  const cwd = join(root, join('/', container.workingDir ?? ''))
  await mkdir(cwd, { recursive: true, mode: 0o700 })
  return { wanted, env, cwd, place: (text) => rewrite(expand(text, wanted)) }
}

export interface ContainerCommand {
  readonly file: string
  readonly args: readonly string[]
  /** The process that it can run in together with others; `args` then has the arguments of the program alone. */
  readonly host?: HostCommand
}

/** The command to run. Throws ConfigError when the image has no program and the spec names none, and StartProblem when it is not there. */
export function containerCommand(container: ContainerSpec, program: ImageProgram, around: ContainerSurroundings): ContainerCommand {
  const host = hostCommand(container, program, around.wanted)
  if (host !== undefined) return { file: programFile(host.file, around), args: (container.args ?? []).map(around.place), host }
  const [named = '', ...more] = (container.command ?? []).map(around.place)
  const entrypoint = named === '' ? program.entrypoint : [...(program.programs[named] ?? [named]), ...more]
  const [name = '', ...first] = entrypoint
  if (name === '') throw new ConfigError('no command specified')
  return { file: programFile(name, around), args: [...first, ...(container.args ?? []).map(around.place)] }
}

export function programFile(name: string, { env, cwd }: ContainerSurroundings): string {
  const found = findProgram(name, { path: env['PATH'] ?? '', cwd })
  if ('problem' in found) throw new StartProblem(found.problem)
  return found.file
}

/** The program cannot be started; in the words of a container runtime. */
export class StartProblem extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StartProblem'
  }
}
