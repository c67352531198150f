import { abortable } from '@thv/kernel/deadline'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { createSingleFlight } from '@thv/kernel/single-flight'
import { isExecutable } from '@thv/programs/find-program'
import { type ImageReference, parseImageReference } from '@thv/programs/image-reference'
import { installNpmPackage, npmCommand } from '@thv/programs/npm-package'
import { installPythonPackage, pythonCommand } from '@thv/programs/python/python-package'
import type { InstallOptions } from '@thv/programs/run-installer'
import type { ImageMap } from './image-map.ts'

/** Finds the program that an image stands for on this machine. */
export interface ImageResolver {
  /** May take minutes: packages are installed. Rejects with `image_unavailable`, whose message says what to do. */
  resolve(image: string, signal: AbortSignal): Promise<ImageProgram>
}

export interface ImageProgram {
  readonly entrypoint: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly imageId: string
  /** Our own program: it finds mounted files through THV_ROOT. */
  readonly own: boolean
  /** Programs that a container's `command[0]` may name, as those of our own image do. */
  readonly programs: Readonly<Record<string, readonly string[]>>
  /** Programs that may share a process, by the arguments with which they host others. */
  readonly hosts: Readonly<Record<string, readonly string[]>>
}

/** One of the images that this repository builds. */
export interface OwnImage {
  /** Without its tag: whatever version a manifest names, what runs here is this one. */
  readonly repository: string
  readonly programs: Readonly<Record<string, readonly string[]>>
  /** Name of the program that runs when a container names none. */
  readonly main: string
  /** Programs of several pods that run in one process, by the arguments with which they host others (ADR 0028). */
  readonly hosts?: Readonly<Record<string, readonly string[]>>
  /** Variables of the image, for all of them; a container's own variables win. */
  readonly env?: Readonly<Record<string, string>>
}

export interface ImageResolverOptions extends Omit<InstallOptions, 'signal'> {
  readonly own: readonly OwnImage[]
  readonly map: ImageMap
  /** Ends installs under way. */
  readonly signal: AbortSignal
}

const SCHEME = /^(?:npx|uvx|exec):\/\//

export function createImageResolver(options: ImageResolverOptions): ImageResolver {
  const flights = createSingleFlight<string, ImageProgram>()

  async function find(image: string): Promise<ImageProgram> {
    const own = options.own.find(({ repository }) => repositoryOf(image) === repository)
    if (own !== undefined) return ownProgram(own)
    const mapped = await options.map.find(image)
    if (mapped !== undefined) return programOf(image, mapped.command, mapped.env)
    if (!SCHEME.test(image)) throw notRunnable(image, options.map.file)
    return programOf(image, await entrypointOf(parseImageReference(image), options))
  }

  return {
    async resolve(image, signal) {
      signal.throwIfAborted()
      // An install goes on when its first caller leaves: the next one wants the same.
      const program = flights.run(image, async () => {
        try {
          return await find(image)
        } catch (error) {
          if (isThvError(error, 'image_unavailable') || options.signal.aborted) throw error
          throw new ThvError('image_unavailable', errorMessage(error), { cause: error })
        }
      })
      return await abortable(program, signal)
    },
  }
}

async function entrypointOf(reference: ImageReference, options: ImageResolverOptions): Promise<readonly string[]> {
  switch (reference.kind) {
    case 'npx': {
      const { file, args } = await npmCommand(await installNpmPackage(reference, options), reference, [])
      return [file, ...args]
    }
    case 'uvx': {
      const { file, args } = await pythonCommand(await installPythonPackage(reference, options), reference, [])
      return [file, ...args]
    }
    case 'exec':
      if (!(await isExecutable(reference.path))) throw new ThvError('image_unavailable', `${reference.path} is not an executable file`)
      return [reference.path]
  }
}

function ownProgram({ repository, programs, main, env = {}, hosts = {} }: OwnImage): ImageProgram {
  return { entrypoint: programs[main] ?? [], env, imageId: `${repository}@this-machine`, own: true, programs, hosts }
}

function programOf(imageId: string, entrypoint: readonly string[], env: Readonly<Record<string, string>> = {}): ImageProgram {
  return { entrypoint, env, imageId, own: false, programs: {}, hosts: {} }
}

function notRunnable(image: string, mapFile: string): ThvError {
  return new ThvError(
    'image_unavailable',
    `container images cannot run here: use npx://PACKAGE@VERSION, uvx://PACKAGE@VERSION or exec:///PATH, or give ${image} a command in ${mapFile}`,
  )
}

/** `host:port/name:tag@digest` without tag and digest. */
function repositoryOf(image: string): string {
  const name = image.split('@')[0] ?? ''
  const tag = name.lastIndexOf(':')
  return tag > name.lastIndexOf('/') ? name.slice(0, tag) : name
}
