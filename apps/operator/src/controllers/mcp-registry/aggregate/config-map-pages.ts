import { isThvError } from '@thv/kernel/errors'
import { type ConfigMap, configMaps, type KubeClient, type ListOptions } from '@thv/kube'

/** Of up to 1 MiB each, so this much of an unknown size is safe. */
const FIRST_PAGE = 50
const LARGEST_PAGE = 500
/** As much as a page may hold, judged by the pages before it. */
const PAGE_BYTES = 8 * 1024 * 1024
/** By which a page shrinks that was too large for the client: JSON writes a control character in six bytes. */
const SHRINK = 5

/** All ConfigMaps of a selection, in pages of a bounded size: few requests where ConfigMaps are small, and none that is too large for the client. */
export async function* configMapPages(
  client: Pick<KubeClient, 'list'>,
  options: Pick<ListOptions, 'namespace' | 'labelSelector' | 'signal'>,
): AsyncGenerator<readonly ConfigMap[], void, void> {
  let limit = FIRST_PAGE
  let next: string | undefined
  let [seen, bytes] = [0, 0]
  for (;;) {
    const page = await pageOf(client, { ...options, limit, continue: next })
    if (page === undefined) {
      limit = Math.ceil(limit / SHRINK)
      continue
    }
    yield page.items
    next = page.metadata.continue || undefined
    if (next === undefined) return
    seen += page.items.length
    for (const map of page.items) bytes += bytesOf(map)
    if (limit >= FIRST_PAGE) limit = Math.min(LARGEST_PAGE, Math.max(FIRST_PAGE, Math.floor((PAGE_BYTES * seen) / Math.max(1, bytes))))
  }
}

/** Undefined: the page is too large, and may be smaller. */
async function pageOf(client: Pick<KubeClient, 'list'>, options: ListOptions & { limit: number }) {
  try {
    return await client.list(configMaps, options)
  } catch (error) {
    if (isThvError(error, 'kube_response_too_large') && options.limit > 1) return undefined
    throw error
  }
}

function bytesOf({ data = {}, binaryData = {} }: ConfigMap): number {
  let bytes = 0
  for (const texts of [data, binaryData]) for (const text of Object.values(texts)) bytes += text.length
  return bytes
}
