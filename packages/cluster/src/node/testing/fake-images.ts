import { ThvError } from '@thv/kernel/errors'
import type { ImageProgram, ImageResolver } from '../images/image-resolver.ts'

/** Images of tests: `node` and `sh` run a script that the container's args hold; `missing` is never there; others come from `more`. */
export function fakeImages(more: Readonly<Record<string, () => Promise<ImageProgram>>> = {}): ImageResolver {
  return {
    async resolve(image, signal) {
      signal.throwIfAborted()
      const special = more[image]
      if (special !== undefined) return await special()
      if (image === 'node') return program(image, [process.execPath, '-e'])
      if (image === 'sh') return program(image, ['/bin/sh', '-c'])
      throw new ThvError('image_unavailable', `there is no program for ${image}; write node or sh`)
    },
  }
}

export function program(image: string, entrypoint: readonly string[], more: Partial<ImageProgram> = {}): ImageProgram {
  return { entrypoint, env: {}, imageId: `thv-test://${image}`, own: false, programs: {}, hosts: {}, ...more }
}
