import { realpath } from 'node:fs/promises'

const MAX_READS = 5

/**
 * The result of reading files that belong together. The kubelet replaces the files of a volume at once, by a link to another folder; a
 * read during which that happened is repeated, so that a key of before is never beside one of after.
 */
export async function consistently<T>(paths: readonly string[], read: () => Promise<T>): Promise<T> {
  for (let reads = 1; ; reads++) {
    const before = await placesOf(paths)
    // A file that vanished in between is no error if the next read has another one.
    const outcome = await read().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    )
    const isSame = before === (await placesOf(paths))
    if (!isSame && reads < MAX_READS) continue
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }
}

/** Where the links lead now. */
async function placesOf(paths: readonly string[]): Promise<string> {
  const places = await Promise.all(paths.map((path) => realpath(path).catch(() => '')))
  return places.join('\n')
}
