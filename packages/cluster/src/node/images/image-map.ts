import { readFile, stat } from 'node:fs/promises'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { parse } from 'yaml'

/** Programs that a user runs in place of container images. */
export interface MappedImage {
  readonly match: string
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export interface ImageMap {
  readonly file: string
  /** The first entry that matches. Rejects with `image_unavailable` when the file cannot be understood. */
  find(image: string): Promise<MappedImage | undefined>
}

const MAX_BYTES = 1 << 20

/**
 * A file of the data folder, read again when it has changed:
 *
 *     images:
 *       - match: ghcr.io/example/server:*
 *         command: [node, /home/me/server.js]
 *         env: { LOG: debug }
 */
export function imageMapFile(file: string): ImageMap {
  let known: { readonly stamp: string; readonly entries: readonly MappedImage[] } | undefined

  async function entries(): Promise<readonly MappedImage[]> {
    const stamp = await stampOf(file)
    if (stamp === undefined) return []
    if (known?.stamp !== stamp) known = { stamp, entries: readImageMap(await readFile(file, 'utf8'), file) }
    return known.entries
  }

  return { file, find: async (image) => (await entries()).find(({ match }) => matches(match, image)) }
}

/** Pure. Throws `image_unavailable` with the place of the mistake. */
export function readImageMap(text: string, file: string): readonly MappedImage[] {
  const wrong = (where: string, what: string) => new ThvError('image_unavailable', `${file}: ${where} ${what}`)
  let document: unknown
  try {
    document = parse(text, { maxAliasCount: 100 })
  } catch (error) {
    throw wrong('is not YAML:', errorMessage(error))
  }
  if (document === null || document === undefined) return []
  const list = isRecord(document) ? document['images'] : undefined
  if (!isRecord(document) || !Array.isArray(list)) throw wrong('', 'must hold a list called images')
  for (const name of Object.keys(document)) if (name !== 'images') throw wrong(name, 'is not known; only images is')
  return list.map((entry: unknown, at) => {
    const where = `images[${at}]`
    if (!isRecord(entry)) throw wrong(where, 'must have match and command')
    const { match, command, env = {}, ...rest } = entry
    const unknown = Object.keys(rest)[0]
    if (unknown !== undefined) throw wrong(`${where}.${unknown}`, 'is not known; match, command and env are')
    if (typeof match !== 'string' || match === '') throw wrong(`${where}.match`, 'must be an image, in which * stands for anything')
    if (!isTexts(command) || command.length === 0) throw wrong(`${where}.command`, 'must be a list of texts: the program and its arguments')
    if (!isRecord(env) || !Object.values(env).every((value) => typeof value === 'string'))
      throw wrong(`${where}.env`, 'must map names to texts')
    return { match, command, env: env as Record<string, string> }
  })
}

function matches(pattern: string, image: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (!image.startsWith(first)) return false
  let at = first.length
  for (const [index, part] of rest.entries()) {
    const isLast = index === rest.length - 1
    const found = isLast ? image.length - part.length : image.indexOf(part, at)
    if (found < at || !image.startsWith(part, found)) return false
    at = found + part.length
  }
  return at === image.length
}

async function stampOf(file: string): Promise<string | undefined> {
  try {
    const { mtimeMs, size, ino } = await stat(file)
    if (size > MAX_BYTES) throw new ThvError('image_unavailable', `${file} is larger than ${MAX_BYTES} bytes`)
    return `${mtimeMs}-${size}-${ino}`
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
