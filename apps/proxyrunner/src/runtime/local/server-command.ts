import { createSingleFlight } from '@thv/kernel/single-flight'
import type { Command } from '@thv/programs/child-process'
import { isExecutable } from '@thv/programs/find-program'
import type { ImageReference } from '@thv/programs/image-reference'
import { type InstallOptions, installNpmPackage, npmCommand } from '@thv/programs/npm-package'
import { installerEnvironment } from '@thv/programs/program-environment'
import { type PythonPackage, pythonCommand } from '@thv/programs/python-package'
import { runtimeError } from '../runtime-errors.ts'

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

function uvxCommand(pkg: PythonPackage, args: readonly string[], { env }: InstallOptions): ServerCommand {
  const resolve = () => pythonCommand(pkg, args, env)
  return { env: installerEnvironment(env), check: async () => void (await resolve()), resolve }
}
