import { PAGE_HEAD, type Page, pageTail } from '@thv/catalog/snapshot/page'
import type { HttpConfig } from '../config/registry-config.ts'
import type { ServedView } from '../engine/engine.ts'
import { createCompressedPages } from './compressed-pages.ts'
import { acceptsGzip, matchesTag } from './conditions.ts'
import type { ApiRequest } from './route.ts'

/** Answers of reads, straight from the snapshot's memory: nothing is copied, and a slow client holds on to its own page only. */
export interface PageAnswers {
  page(request: ApiRequest, view: ServedView, page: Page): void | Promise<void>
  /** As `page`; the same question about the same view is worked out once. */
  list(request: ApiRequest, view: ServedView, list: () => Page): void | Promise<void>
  /** What a search has found: it also depends on the index, which may be of an older view. */
  found(request: ApiRequest, view: ServedView, page: Page): void | Promise<void>
  entry(request: ApiRequest, view: ServedView, entry: Uint8Array): void | Promise<void>
}

interface Body {
  readonly head: string
  readonly slices: readonly Uint8Array[]
  readonly tail: string
  readonly bytes: number
  readonly searched: boolean
}

const MAX_PREPARED = 512
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
    // Whoever has signed in as somebody else must not find in a browser's cache what that one saw.
    ...(options.shared ? [] : ['Authorization']),
    // With fixed origins the answer to a page of another origin differs.
    ...(http.cors === undefined || http.cors.origins.includes('*') ? [] : ['Origin']),
  ].join(', ')
  const cacheControl = `${scope}, ${freshness}`
  const fixed = ['Content-Type', 'application/json', 'Cache-Control', cacheControl, 'Vary', vary]

  function send(request: ApiRequest, view: ServedView, body: Body): void | Promise<void> {
    const { exchange } = request
    const tag = body.searched ? `W/"${view.tag}.${view.searchTag ?? ''}"` : `W/"${view.tag}"`
    const condition = exchange.headers['if-none-match']
    if (condition !== undefined && matchesTag(condition, tag)) return notModified(request, tag)
    if (!http.compression || body.bytes < MIN_COMPRESSED || !acceptsGzip(exchange.headers['accept-encoding']))
      return plain(request, tag, body)
    const packed = compressed.get(view, `${tag} ${exchange.target}`, () => [Buffer.from(body.head), ...body.slices, Buffer.from(body.tail)])
    if (packed === undefined) return plain(request, tag, body)
    return packed instanceof Promise ? packed.then((bytes) => gzipped(request, tag, bytes)) : gzipped(request, tag, packed)
  }

  function notModified({ exchange, headers }: ApiRequest, tag: string): void {
    if (exchange.closed) return
    exchange.response.writeHead(304, ['ETag', tag, 'Cache-Control', cacheControl, 'Vary', vary, ...headers])
    exchange.response.end()
  }

  function plain({ exchange, headers }: ApiRequest, tag: string, body: Body): void {
    const { response } = exchange
    if (exchange.closed || response.destroyed) return
    response.writeHead(200, [...fixed, 'Content-Length', String(body.bytes), 'ETag', tag, ...headers])
    if (exchange.method === 'HEAD') return void response.end()
    const [only] = body.slices
    if (body.head === '' && body.tail === '') return void response.end(only)
    // One system call for all of it; the head goes along with the headers as one string.
    response.cork()
    response.write(body.head, 'latin1')
    for (const slice of body.slices) response.write(slice)
    response.end(body.tail, 'latin1')
    response.uncork()
  }

  function gzipped({ exchange, headers }: ApiRequest, tag: string, bytes: Buffer): void {
    const { response } = exchange
    if (exchange.closed || response.destroyed) return
    const length = String(bytes.length)
    const own = ['Content-Encoding', 'gzip', 'Content-Length', length, 'ETag', tag]
    response.writeHead(200, [...fixed, ...own, ...headers])
    if (exchange.method === 'HEAD') response.end()
    else response.end(bytes)
  }

  const prepared = new WeakMap<ServedView, Map<string, Body>>()

  /** Everybody begins with the same few pages. What is remembered are places in the view's memory, so it costs little. */
  function remembered(view: ServedView, question: string, list: () => Page): Body {
    const pages = prepared.get(view) ?? new Map<string, Body>()
    if (pages.size === 0) prepared.set(view, pages)
    const known = pages.get(question)
    if (known !== undefined) return known
    const body = bodyOf(list(), false)
    if (pages.size < MAX_PREPARED && question.length <= MAX_QUESTION && body.slices.length <= MAX_SLICES) pages.set(question, body)
    return body
  }

  return {
    page: (request, view, page) => send(request, view, bodyOf(page, false)),
    list: (request, view, list) => send(request, view, remembered(view, request.exchange.query, list)),
    found: (request, view, page) => send(request, view, bodyOf(page, true)),
    entry: (request, view, entry) => send(request, view, { head: '', slices: [entry], tail: '', bytes: entry.length, searched: false }),
  }
}

function bodyOf(page: Page, searched: boolean): Body {
  const tail = pageTail(page)
  return { head: PAGE_HEAD, slices: page.slices, tail, bytes: PAGE_HEAD.length + page.bytes + tail.length, searched }
}
