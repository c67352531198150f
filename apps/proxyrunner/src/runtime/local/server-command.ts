import { createSingleFlight } from '@thv/kernel/single-flight'
import { runtimeError } from '../runtime-errors.ts'
import { installerEnvironment } from './child-environment.ts'
import type { Command } from './child-process.ts'
import { findProgram, isExecutable } from './find-program.ts'
import type { ImageReference } from './image-reference.ts'
import { type InstallOptions, installNpmPackage, npmCommand } from './npm-package.ts'

/** How the server is started, found out when it is first needed. */
export interface ServerCommand {
  /** What can be known at once is checked: throws `program_missing` or `process_start_failed`. */
  check(): Promise<void>
  /** Installs what is missing. May take minutes; concurrent callers share the work. */
  resolve(): Promise<Command>
  /** Variables that this kind of program needs beyond those of every server. */
  readonly env: Readonly<Record<string, string>>
}

export function serverCommand(image: ImageReference, args: readonly string[], options: InstallOptions): ServerCommand {
  switch (image.kind) {
    case 'exec':
      return execCommand(image.path, args)
    case 'uvx':
      return uvxCommand(image, args, options)
    case 'npx':
      return npxCommand(image, args, options)
  }
}

function execCommand(path: string, args: readonly string[]): ServerCommand {
  return {
    env: {},
    async check() {
      if (!(await isExecutable(path))) throw runtimeError('process_start_failed', `image: ${path} is not an executable file`)
    },
    resolve: async () => ({ file: path, args }),
  }
}

function npxCommand(pkg: { name: string; version: string }, args: readonly string[], options: InstallOptions): ServerCommand {
  const flights = createSingleFlight<'install', Command>()
  return {
    env: {},
    check: async () => {}, // a package that is installed already needs no npm
    resolve: () =>
      flights.run('install', async () => {
        const folder = await installNpmPackage(pkg, options)
        return await npmCommand(folder, pkg, args)
      }),
  }
}

/** uv keeps packages and locks by itself. */
function uvxCommand({ name, version }: { name: string; version: string }, args: readonly string[], options: InstallOptions): ServerCommand {
  const { env } = options
  const resolve = async (): Promise<Command> => {
    const uvx = await findProgram(['uvx'], env['PATH'])
    if (uvx !== undefined) return { file: uvx, args: [`${name}@${version}`, ...args] }
    const uv = await findProgram(['uv'], env['PATH'])
    if (uv !== undefined) return { file: uv, args: ['tool', 'run', `${name}@${version}`, ...args] }
    throw runtimeError('program_missing', `image: ${name}@${version} is run by uv, which is not on PATH; install it with: pip install uv`)
  }
  return { env: installerEnvironment(env), check: async () => void (await resolve()), resolve }
}
