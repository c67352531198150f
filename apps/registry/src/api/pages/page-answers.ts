import { PAGE_HEAD, type Page, pageTail } from '@thv/catalog/snapshot/page'
import type { Exchange } from '@thv/http/server/exchange'
import type { HttpConfig } from '../../config/registry-config.ts'
import type { ServedView } from '../../engine/engine.ts'
import type { ApiRequest } from '../http/route.ts'
import { createCompressedPages } from './compressed-pages.ts'
import { acceptsGzip, matchesTag } from './conditions.ts'
import { createRecentAnswers, type RecentAnswers } from './recent-answers.ts'

/** Answers of reads, straight from the snapshot's memory: nothing is copied, and a slow client holds on to its own page only. */
export interface PageAnswers {
  page(request: ApiRequest, view: ServedView, page: Page): void | Promise<void>
  /** As `page`; the same question about the same view is worked out once. */
  list(request: ApiRequest, view: ServedView, list: () => Page): void | Promise<void>
  /** The result of a search: it also depends on the index, which may be of an older view. */
  found(request: ApiRequest, view: ServedView, page: Page): void | Promise<void>
  entry(request: ApiRequest, view: ServedView, entry: Uint8Array): void | Promise<void>
  /** The answer to a request for this path and query, if this view was asked for it not long ago. */
  known(view: ServedView, target: string): KnownAnswer | undefined
  /** The same answer to another client: conditions and encodings are its own. `headers` as those of an ApiRequest. */
  again(exchange: Exchange, answer: KnownAnswer, headers: readonly string[]): void | Promise<void>
}

/** Places in the view's memory, so it costs little to keep. */
export interface KnownAnswer {
  readonly operationId: string
  readonly view: ServedView
  readonly tag: string
  /** Of the answer without compression. */
  readonly headers: readonly string[]
  /** Of pages; '' where the one slice is all of it. */
  readonly head: string
  readonly slices: readonly Uint8Array[]
  readonly tail: string
  readonly bytes: number
}

/** Per view. Everybody begins with the same few pages, and some servers are asked for much more often than others. */
const GENERATION = 512
const MAX_QUESTION = 512
const MAX_SLICES = 64
/** Below this the headers of compression cost more than it saves. */
const MIN_COMPRESSED = 1_400

export function createPageAnswers(http: HttpConfig, options: { readonly shared: boolean }): PageAnswers {
  const compressed = createCompressedPages()
  const scope = options.shared ? 'public' : 'private'
  const freshness = http.cacheSeconds > 0 ? `max-age=${http.cacheSeconds}` : 'no-cache'
  const vary = [
    'Accept-Encoding',
    // A caller that signs in as another user must not find the former user's answers in a browser's cache.
    ...(options.shared ? [] : ['Authorization']),
    // With fixed origins the answer to a page of another origin differs.
    ...(http.cors === undefined || http.cors.origins.includes('*') ? [] : ['Origin']),
  ].join(', ')
  const cacheControl = `${scope}, ${freshness}`
  const fixed = ['Content-Type', 'application/json', 'Cache-Control', cacheControl, 'Vary', vary]

  const recent = new WeakMap<ServedView, RecentAnswers<KnownAnswer>>()

  function send(exchange: Exchange, answer: KnownAnswer, headers: readonly string[]): void | Promise<void> {
    const { tag, view } = answer
    const condition = exchange.headers['if-none-match']
    if (condition !== undefined && matchesTag(condition, tag)) return notModified(exchange, tag, headers)
    if (!http.compression || answer.bytes < MIN_COMPRESSED || !acceptsGzip(exchange.headers['accept-encoding']))
      return plain(exchange, answer, headers)
    const parts = () => [Buffer.from(answer.head), ...answer.slices, Buffer.from(answer.tail)]
    const packed = compressed.get(view, `${tag} ${exchange.target}`, parts)
    if (packed === undefined) return plain(exchange, answer, headers)
    const gzipHeaders = (bytes: Buffer) => [...fixed, 'Content-Encoding', 'gzip', 'Content-Length', String(bytes.length), 'ETag', tag]
    const gzipped = (bytes: Buffer) => whole(exchange, [...gzipHeaders(bytes), ...headers], bytes)
    return packed instanceof Promise ? packed.then(gzipped) : gzipped(packed)
  }

  function notModified(exchange: Exchange, tag: string, headers: readonly string[]): void {
    if (exchange.closed) return
    exchange.response.writeHead(304, ['ETag', tag, 'Cache-Control', cacheControl, 'Vary', vary, ...headers])
    exchange.response.end()
  }

  function answerOf(request: ApiRequest, view: ServedView, content: Content): KnownAnswer {
    const tag = content.searched ? `W/"${view.tag}.${view.searchTag ?? ''}"` : `W/"${view.tag}"`
    const headers = [...fixed, 'Content-Length', String(content.bytes), 'ETag', tag]
    const { head, slices, tail, bytes } = content
    return { operationId: request.operationId, view, tag, headers, head, slices, tail, bytes }
  }

  function remember(target: string, answer: KnownAnswer): void {
    if (target.length > MAX_QUESTION || answer.slices.length > MAX_SLICES) return
    let answers = recent.get(answer.view)
    if (answers === undefined) {
      answers = createRecentAnswers(GENERATION)
      recent.set(answer.view, answers)
    }
    answers.offer(target, answer)
  }

  function first(request: ApiRequest, view: ServedView, content: Content): void | Promise<void> {
    const answer = answerOf(request, view, content)
    remember(request.exchange.target, answer)
    return send(request.exchange, answer, request.headers)
  }

  const known = (view: ServedView, target: string) => recent.get(view)?.get(target)

  return {
    page: (request, view, page) => first(request, view, contentOf(page, false)),
    list(request, view, list) {
      const answer = known(view, request.exchange.target)
      return answer === undefined ? first(request, view, contentOf(list(), false)) : send(request.exchange, answer, request.headers)
    },
    found: (request, view, page) => first(request, view, contentOf(page, true)),
    entry: (request, view, entry) => first(request, view, { head: '', slices: [entry], tail: '', bytes: entry.length, searched: false }),
    known,
    again: send,
  }
}

interface Content extends Pick<KnownAnswer, 'head' | 'slices' | 'tail' | 'bytes'> {
  readonly searched: boolean
}

function contentOf(page: Page, searched: boolean): Content {
  const tail = pageTail(page)
  return { head: PAGE_HEAD, slices: page.slices, tail, bytes: PAGE_HEAD.length + page.bytes + tail.length, searched }
}

function plain(exchange: Exchange, answer: KnownAnswer, headers: readonly string[]): void {
  const [only] = answer.slices
  const all = [...answer.headers, ...headers]
  if (only !== undefined && answer.head === '') {
    whole(exchange, all, only)
    return
  }
  const { response } = exchange
  if (exchange.closed || response.destroyed) return
  response.writeHead(200, all)
  if (exchange.method === 'HEAD') return void response.end()
  // One system call for all of it; the head goes along with the headers as one string.
  response.cork()
  response.write(answer.head, 'latin1')
  for (const slice of answer.slices) response.write(slice)
  response.end(answer.tail, 'latin1')
  response.uncork()
}

function whole(exchange: Exchange, headers: string[], body: Uint8Array): void {
  const { response } = exchange
  if (exchange.closed || response.destroyed) return
  response.writeHead(200, headers)
  if (exchange.method === 'HEAD') response.end()
  else response.end(body)
}
