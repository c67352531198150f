import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { type HeaderMap, headerText, type MutableHeaderMap } from '@thv/http/header-map'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { ResponseSink } from '@thv/http/outbound/outbound-call'
import { formatDuration } from '@thv/kernel/duration'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import { awayFromPlace, placedSink } from './fetch-address.ts'
import { isRedirect, MAX_REDIRECTS, redirected } from './redirects.ts'
import type { FetchContext } from './registry-handler.ts'
import { allowHint, sourceAddressPolicy } from './source-addresses.ts'

export interface DownloadRequest {
  readonly url: string
  /** Flat name-value pairs. Sent to the origin of `url` only, wherever redirects lead. */
  readonly headers?: readonly string[]
  /** Flat pairs that every origin may see. */
  readonly conditions?: readonly string[]
  /** Of the body, unpacked. */
  readonly maxBytes: number
  /** From the first byte asked to the last one read, redirects included; but not while the attempt waits for its place. */
  readonly timeoutMs: number
}

export interface Downloaded {
  readonly status: number
  readonly headers: HeaderMap
  /** Only with status 200. */
  readonly body: Buffer
  /** For messages: without query and user name. */
  readonly shownUrl: string
}

/**
 * GET, bounded in every way: addresses vetted at each hop and at connect time, bytes on the wire over the whole attempt, bytes unpacked,
 * redirects, time. Any status comes back as it is; what brings none is `source_blocked`, `source_limit` or `source_failed`.
 */
export async function download(outbound: Outbound, request: DownloadRequest, context: FetchContext): Promise<Downloaded> {
  const shown = shownUrl(request.url)
  try {
    const answer = await awayFromPlace(context, () => withinTime(outbound, request, context), wireBudget(context).used)
    return { ...answer, body: answer.status === 200 ? await unpacked(answer.body, answer.headers, request.maxBytes) : Buffer.alloc(0) }
  } catch (error) {
    throw sourceError(error, shown)
  }
}

async function withinTime(outbound: Outbound, request: DownloadRequest, context: FetchContext): Promise<Downloaded> {
  const limit = new AbortController()
  const late = () =>
    limit.abort(
      new ThvError('source_failed', `${shownUrl(request.url)} did not answer completely within ${formatDuration(request.timeoutMs)}`),
    )
  const start = () => context.clock.setTimer(request.timeoutMs, late)
  let timer = start()
  const time: TimeLimit = {
    signal: linkSignals(context.signal, limit.signal),
    stop: () => timer.cancel(),
    restart: () => {
      timer = start()
    },
  }
  try {
    return await follow(outbound, request, { context, time })
  } finally {
    timer.cancel()
  }
}

interface TimeLimit {
  readonly signal: AbortSignal
  stop(): void
  restart(): void
}

interface Limited {
  readonly context: FetchContext
  readonly time: TimeLimit
}

/** The body as it came over the wire. */
async function follow(outbound: Outbound, request: DownloadRequest, limited: Limited): Promise<Downloaded> {
  let url = new URL(request.url)
  const { origin } = url
  for (let hops = 0; ; hops += 1) {
    const own = url.origin === origin ? (request.headers ?? []) : []
    const headers = ['accept', 'application/json', 'accept-encoding', 'gzip', 'user-agent', 'thv-registry-api', ...own]
    const answer = await ask(outbound, { url, headers: [...headers, ...(request.conditions ?? [])], maxBytes: request.maxBytes }, limited)
    const location = headerText(answer.headers['location'])
    if (!isRedirect(answer.status) || location === undefined) return { ...answer, shownUrl: shownUrl(url.href) }
    if (hops === MAX_REDIRECTS) throw new ThvError('source_failed', `${shownUrl(request.url)} redirects more than ${MAX_REDIRECTS} times`)
    url = redirected(url, location, shownUrl(url.href))
  }
}

interface Ask {
  readonly url: URL
  readonly headers: string[]
  readonly maxBytes: number
}

async function ask(outbound: Outbound, { url, headers, maxBytes }: Ask, { context, time }: Limited): Promise<Omit<Downloaded, 'shownUrl'>> {
  const { place, signal, limits } = context
  const target = outbound.target({ url: url.origin, policy: sourceAddressPolicy(context) })
  const wire = wireBudget(context)
  const sink = new BodySink()
  const maxResponseBytes = Math.min(maxBytes, limits.maxWireBytes - wire.used)
  try {
    await target.send(
      { method: 'GET', path: `${url.pathname}${url.search}`, headers, signal: time.signal, maxResponseBytes },
      placedSink(sink, { place, signal, receivedBytes: wire.used, onStop: time.stop, onGoOn: time.restart }),
    )
  } catch (error) {
    if (error !== BODY_UNWANTED) throw error
  } finally {
    wire.used += sink.length
  }
  return { status: sink.status, headers: sink.headers, body: sink.take() }
}

/** Counts what one attempt has read, over all of its requests. */
function wireBudget({ memo }: FetchContext): { used: number } {
  const budget = (memo.get('wire') ?? { used: 0 }) as { used: number }
  memo.set('wire', budget)
  return budget
}

async function unpacked(body: Buffer, headers: HeaderMap, maxBytes: number): Promise<Buffer> {
  const encoding = headerText(headers['content-encoding'])?.trim().toLowerCase() ?? ''
  if (encoding === '' || encoding === 'identity') return body
  if (encoding !== 'gzip' && encoding !== 'x-gzip') throw new ThvError('source_failed', 'the answer has an encoding that was not asked for')
  try {
    return await promisify(gunzip)(body, { maxOutputLength: maxBytes })
  } catch (cause) {
    const large = cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE'
    if (large) throw new ThvError('source_limit', `the answer unpacks to more than ${maxBytes} bytes`)
    throw new ThvError('source_failed', 'the answer is not valid gzip', { cause })
  }
}

const BODY_UNWANTED = new Error('the body is not wanted')

/** Keeps the body of a 200 in one piece, without a second copy where its length is known. Other bodies are not read at all. */
class BodySink implements ResponseSink {
  status = 0
  headers: MutableHeaderMap = {}
  length = 0
  #whole: Buffer | undefined
  #chunks: Buffer[] = []

  start(status: number, headers: MutableHeaderMap): void {
    this.status = status
    this.headers = headers
    if (status === 304) return
    if (status !== 200) throw BODY_UNWANTED
    const length = Number(headerText(headers['content-length']) ?? 0)
    if (length > 0) this.#whole = Buffer.allocUnsafeSlow(length)
  }

  data(chunk: Buffer): void {
    if (this.#whole !== undefined && this.length + chunk.length <= this.#whole.length) chunk.copy(this.#whole, this.length)
    else this.#chunks.push(chunk)
    this.length += chunk.length
  }

  end(): void {}

  take(): Buffer {
    return this.#whole?.subarray(0, this.length) ?? Buffer.concat(this.#chunks)
  }
}

/** Without what may be secret. */
export function shownUrl(text: string): string {
  const url = URL.parse(text)
  return url === null ? 'the address' : `${url.origin}${url.pathname}`
}

function sourceError(error: unknown, shown: string): unknown {
  if (!isThvError(error)) return error
  const { message } = error
  if (error.code === 'backend_blocked') {
    return new ThvError('source_blocked', `${shown} leads to what may not be fetched: ${message}${allowHint(message)}`)
  }
  if (error.code === 'backend_response_too_large') return new ThvError('source_limit', message)
  if (error.code.startsWith('backend_')) {
    const passing = PASSING.has(error.code)
    return new ThvError('source_failed', message, { details: { passing } })
  }
  if (error.code === 'source_failed' || error.code === 'source_limit') {
    return message.includes(shown) ? error : new ThvError(error.code, `${shown}: ${message}`, { details: error.details })
  }
  return error
}

/** Failures after which another try in a moment makes sense. */
const PASSING: ReadonlySet<string> = new Set([
  'backend_connect_timeout',
  'backend_dns',
  'backend_refused',
  'backend_reset',
  'backend_timeout',
  'backend_unreachable',
])

/** Whether a `download` that failed may be tried again at once. */
export function isPassing(error: unknown): boolean {
  return isThvError(error, 'source_failed') && error.details['passing'] === true
}
