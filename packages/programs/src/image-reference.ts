import { ThvError } from '@thv/kernel/errors'

/** Meaning of an image reference without a cluster. */
export type ImageReference =
  | { readonly kind: 'npx'; readonly name: string; readonly version: string }
  | { readonly kind: 'uvx'; readonly name: string; readonly version: string }
  | { readonly kind: 'exec'; readonly path: string }

/** Lower case only: names that differ in case alone would share a folder on some file systems. */
const NPM_NAME = /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/
/** One version, exactly: what a range or tag means changes from day to day, and an installed package is never looked up again. */
const SEMVER = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/
const PYPI_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/
const PYPI_VERSION = /^\d[0-9A-Za-z.!+_-]*$/
const MAX_LENGTH = 214

/**
 * Throws `image_invalid`. Names and versions end up in file names and on command lines, so whatever could be a path or an option there
 * is refused.
 */
export function parseImageReference(image: string): ImageReference {
  const scheme = /^(npx|uvx|exec):\/\//.exec(image)?.[1]
  const rest = image.slice((scheme?.length ?? 0) + '://'.length)
  if (scheme === 'npx') return { kind: 'npx', ...packageAt(rest, { name: NPM_NAME, version: SEMVER, example: '1.2.3' }) }
  if (scheme === 'uvx') return { kind: 'uvx', ...packageAt(rest, { name: PYPI_NAME, version: PYPI_VERSION, example: '1.2.3' }) }
  if (scheme === 'exec') return { kind: 'exec', path: absolutePath(rest) }
  throw new ThvError(
    'image_invalid',
    'image: without a cluster only npx://PACKAGE@VERSION, uvx://PACKAGE@VERSION and exec:///path/to/program can be run; container images need --runtime kubernetes',
  )
}

function packageAt(text: string, rules: { name: RegExp; version: RegExp; example: string }): { name: string; version: string } {
  const at = text.lastIndexOf('@')
  const hasVersion = at > 0
  const name = hasVersion ? text.slice(0, at) : text
  const version = hasVersion ? text.slice(at + 1) : ''
  if (name.length > MAX_LENGTH || !rules.name.test(name) || name.includes('..')) {
    throw new ThvError('image_invalid', 'image: expects the name of a package, such as npx://@scope/name@1.2.3')
  }
  if (version === '') throw new ThvError('image_invalid', `image: the package ${name} needs a version, as in ${name}@${rules.example}`)
  if (version.length > MAX_LENGTH || !rules.version.test(version) || version.includes('..')) {
    throw new ThvError('image_invalid', `image: the package ${name} needs one exact version, as in ${name}@${rules.example}`)
  }
  return { name, version }
}

function absolutePath(path: string): string {
  const isClean = path.startsWith('/') && !path.endsWith('/') && !/\p{Cc}/u.test(path) && !path.split('/').includes('..')
  if (!isClean || path.startsWith('//')) {
    throw new ThvError('image_invalid', 'image: exec:// expects the absolute path of a program, as in exec:///usr/local/bin/server')
  }
  return path
}
