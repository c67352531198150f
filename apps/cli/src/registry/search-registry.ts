import { errorMessage, ThvError } from '@thv/kernel/errors'
import { plainText } from '../text/plain-text.ts'

/** A server as far as a line about it tells. */
export interface FoundServer {
  readonly server: {
    readonly name: string
    readonly version: string
    readonly title?: string
    readonly description?: string
    /** Documents of the first schema spell it `registry_type`. */
    readonly packages?: readonly { readonly registryType?: string; readonly registry_type?: string }[]
    readonly remotes?: readonly { readonly type: string; readonly url: string }[]
  }
}

const SEARCH_PATH = '/v0.1/x/dev.toolhive/search'
const LIMIT_MS = 10_000
const MAX_BYTES = 16 << 20

/** The servers of a registry that match, best first. `base` is the URL of one registry, or of all of a server. */
export async function searchRegistry(
  base: string,
  query: URLSearchParams,
  options: { readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal | undefined } = {},
): Promise<readonly FoundServer[]> {
  const url = `${base}${SEARCH_PATH}?${query}`
  const limit = AbortSignal.timeout(LIMIT_MS)
  const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal])
  const headers = { accept: 'application/json', ...options.headers }
  let status: number
  let text: string
  try {
    const answer = await fetch(url, { signal, headers })
    status = answer.status
    text = await boundedText(answer.body)
  } catch (error) {
    throw new ThvError('source_failed', `the registry at ${new URL(url).origin} does not answer: ${errorMessage(error)}`, { cause: error })
  }
  const value = parsed(text) as { servers?: readonly FoundServer[]; error?: unknown } | undefined
  if (status === 200 && Array.isArray(value?.servers)) return value.servers
  const why = typeof value?.error === 'string' ? plainText(value.error) : `it answered ${status}`
  if (status === 404) throw new ThvError('source_failed', `${new URL(url).origin} has no such registry, or does not support search: ${why}`)
  throw new ThvError('source_failed', `the registry at ${new URL(url).origin} cannot be searched: ${why}`)
}

async function boundedText(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    bytes += part.length
    if (bytes > MAX_BYTES) throw new ThvError('source_limit', 'the response is too large')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // not a registry: the caller says so
  }
}
