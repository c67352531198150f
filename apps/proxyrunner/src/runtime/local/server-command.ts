import { createSingleFlight } from '@thv/kernel/single-flight'
import type { Command } from '@thv/programs/child-process'
import { isExecutable } from '@thv/programs/find-program'
import type { ImageReference } from '@thv/programs/image-reference'
import { installNpmPackage, npmCommand } from '@thv/programs/npm-package'
import { checkPythonPackage, installPythonPackage, pythonCommand } from '@thv/programs/python/python-package'
import type { InstallOptions, PackageId } from '@thv/programs/run-installer'
import { runtimeError } from '../runtime-errors.ts'

/** How the server is started, found out when it is first needed. */
export interface ServerCommand {
  /** Checks early what can be checked: throws `program_missing` or `process_start_failed`. */
  check(): Promise<void>
  /** Installs what is missing. May take minutes; concurrent callers share the work. */
  resolve(): Promise<Command>
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
    async check() {
      if (!(await isExecutable(path))) throw runtimeError('process_start_failed', `image: ${path} is not an executable file`)
    },
    resolve: async () => ({ file: path, args }),
  }
}

function npxCommand(pkg: PackageId, args: readonly string[], options: InstallOptions): ServerCommand {
  const flights = createSingleFlight<'install', Command>()
  return {
    check: async () => {}, // a package that is installed already needs no npm
    resolve: () => flights.run('install', async () => npmCommand(await installNpmPackage(pkg, options), pkg, args)),
  }
}

function uvxCommand(pkg: PackageId, args: readonly string[], options: InstallOptions): ServerCommand {
  const flights = createSingleFlight<'install', Command>()
  return {
    check: () => checkPythonPackage(pkg, options),
    resolve: () => flights.run('install', async () => pythonCommand(await installPythonPackage(pkg, options), pkg, args)),
  }
}
