import { errorMessage } from '@thv/kernel/errors'
import { parseImageReference } from '@thv/programs/image-reference'
import type { EnvVar } from '../../deployment/contribution.ts'
import type { TemplateProblem } from '../../deployment/template/template-problem.ts'
import type { OperatorSettings } from '../../operator-settings.ts'

/** How an image is run: as it is, or, for a package of a registry, by an image that fetches it. */
export interface ImageRun {
  readonly image: string
  /** Undefined: what the image itself says. */
  readonly command?: readonly string[]
  readonly env: readonly EnvVar[]
}

type Settings = Pick<OperatorSettings, 'packageImages'>

/** The only folder that every pod of a server may write to. */
const WRITABLE = '/tmp'

/**
 * `npx://PACKAGE@VERSION` and `uvx://PACKAGE@VERSION`. On a node that runs such images by itself they stay as they are. Pure.
 */
export function imageRun(image: string, { packageImages }: Settings): ImageRun {
  const reference = packageImages === 'native' ? undefined : packageOf(image)
  if (reference === undefined || packageImages === 'native') return { image, env: [] }
  const id = `${reference.name}@${reference.version}`
  const home = { name: 'HOME', value: WRITABLE }
  return reference.kind === 'npx'
    ? { image: packageImages.npx, command: ['npx', '--yes', id], env: [home, { name: 'npm_config_update_notifier', value: 'false' }] }
    : { image: packageImages.uvx, command: ['uvx', id], env: [home] }
}

/** A package that its name does not identify is rejected here, not by a pod that never starts. */
export function packageProblems({ image }: { readonly image: string }): TemplateProblem[] {
  try {
    packageOf(image)
    return []
  } catch (error) {
    return [{ path: 'spec.image', message: `cannot be used: ${errorMessage(error).replace(/^image: /, '')}` }]
  }
}

function packageOf(image: string) {
  if (!/^(?:npx|uvx):\/\//.test(image)) return undefined
  const reference = parseImageReference(image)
  return reference.kind === 'exec' ? undefined : reference
}
