import { setImmediate as nextTurn } from 'node:timers/promises'
import { headerText } from '@thv/http/header-map'
import type { Outbound } from '@thv/http/outbound/outbound'
import { type BackoffOptions, createBackoff } from '@thv/kernel/backoff'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { runInTurns, type Steps } from '@thv/kernel/steps'
import { type Downloaded, download, isPassing } from '../fetch/download.ts'
import { awayFromPlace } from '../fetch/fetch-address.ts'
import type { FetchContext } from '../fetch/registry-handler.ts'
import { isListAt, isObjectAt, itemsAt, membersAt, wholeValue } from '../format/json-scan.ts'
import { type EntryReading, readAlone, readUpstreamEntry, shapeOf } from '../format/read-entry.ts'

export interface PageSettings {
  readonly endpoint: string
  /** Flat pairs. */
  readonly headers: readonly string[]
  readonly timeoutMs: number
  readonly strict: boolean
  readonly backoff: BackoffOptions
}

/** Gets the entries of a page one by one, so that they are never all in memory with their problems. */
export type TakeReading = (reading: EntryReading) => void

/** A status that is not 200, for the caller to handle. */
export class PageRefused extends ThvError {
  readonly status: number

  constructor(status: number, message: string) {
    super('source_failed', message)
    this.status = status
  }
}

const MAX_PAGE_BYTES = 100 * 1024 * 1024
const MAX_TRIES = 4
const MAX_WAIT_MS = 60_000
const MAX_CURSOR = 4_096

/** One page, tried again a few times while the registry is busy or out of reach. Gives the cursor of the next one, if there is one. */
export async function readPage(outbound: Outbound, settings: PageSettings, query: PageQuery): Promise<string | undefined> {
  const { context, parameters } = query
  const backoff = createBackoff(settings.backoff)
  for (;;) {
    const tried = await attempt(outbound, settings, query)
    if (tried.answer?.status === 200) return takePage(tried.answer, settings, query)
    const delay = backoff.next()
    const wait = Math.max(delay, tried.answer === undefined ? 0 : retryAfterMs(tried.answer, context))
    const hopeless = tried.answer !== undefined && !BUSY.has(tried.answer.status)
    if (hopeless || backoff.failures >= MAX_TRIES || wait > MAX_WAIT_MS)
      throw tried.answer ? refused(tried.answer, parameters) : tried.error
    await awayFromPlace(context, () => context.clock.sleep(wait, context.signal))
  }
}

export interface PageQuery {
  readonly parameters: Readonly<Record<string, string>>
  readonly context: FetchContext
  readonly take: TakeReading
}

/** Statuses that pass; a registry says so with them when it is asked too often. */
const BUSY: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

type Tried = { readonly answer: Downloaded; readonly error?: undefined } | { readonly answer?: undefined; readonly error: unknown }

async function attempt(outbound: Outbound, settings: PageSettings, { parameters, context }: PageQuery): Promise<Tried> {
  const { endpoint, headers, timeoutMs } = settings
  const url = `${endpoint.replace(/\/+$/, '')}/v0.1/servers?${new URLSearchParams(parameters)}`
  const maxBytes = Math.min(MAX_PAGE_BYTES, context.limits.maxBytes)
  try {
    return { answer: await download(outbound, { url, headers, maxBytes, timeoutMs }, context) }
  } catch (error) {
    if (isPassing(error)) return { error }
    throw error
  }
}

function retryAfterMs({ headers }: Downloaded, { clock }: FetchContext): number {
  const text = headerText(headers['retry-after'])?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const date = Date.parse(text)
  return Number.isNaN(date) ? 0 : Math.max(0, date - clock.now())
}

function refused({ status, shownUrl, headers }: Downloaded, parameters: PageQuery['parameters']): PageRefused {
  const wait = headerText(headers['retry-after'])
  const more =
    status === 404 && parameters['cursor'] === undefined
      ? ': there is no MCP registry'
      : status === 401 || status === 403
        ? ': it wants other credentials (headersFile)'
        : wait !== undefined && /^[\w ,:+-]{1,40}$/.test(wait)
          ? `: it asks to wait (Retry-After: ${wait})`
          : ''
  return new PageRefused(status, `HTTP ${status} for ${shownUrl}${more}`)
}

async function takePage({ body, shownUrl, headers }: Downloaded, { strict }: PageSettings, query: PageQuery): Promise<string | undefined> {
  const { take, context } = query
  try {
    return await runInTurns(pageSteps(body, { strict, take }), { pause: () => nextTurn(), signal: context.signal })
  } catch (error) {
    if (context.signal.aborted || isThvError(error, 'source_limit')) throw error
    const type = headerText(headers['content-type'])?.slice(0, 60) ?? 'none'
    const what = error instanceof ThvError ? error.message : 'it cannot be read'
    throw new ThvError('source_failed', `${shownUrl}: ${what} (content type: ${type})`)
  }
}

const STEP_BYTES = 512 * 1024

/** Gives the cursor of the next page. */
export function* pageSteps(body: Buffer, { strict, take }: { strict: boolean; take: TakeReading }): Steps<string | undefined> {
  const root = wholeValue(body)
  if (!isObjectAt(body, root.start)) throw new ThvError('source_failed', 'the page is not an object')
  let nextCursor: string | undefined
  let found = false
  let next = STEP_BYTES
  for (const part of membersAt(body, root.start)) {
    if (part.name === 'metadata') nextCursor = cursorOf(body.toString('utf8', part.start, part.end))
    if (part.name !== 'servers') continue
    found = true
    if (!isListAt(body, part.start)) {
      // A list without entries is null in some languages.
      if (body.toString('latin1', part.start, part.end) === 'null') continue
      throw new ThvError('source_failed', 'the servers of the page are not a list')
    }
    for (const span of itemsAt(body, part.start)) {
      take(readAlone(() => readUpstreamEntry(body, { ...span, shape: shapeOf(body, span) }, { strict })))
      if (span.end < next) continue
      next = span.end + STEP_BYTES
      yield
    }
  }
  if (!found) throw new ThvError('source_failed', 'the page has no servers')
  return nextCursor
}

function cursorOf(metadata: string): string | undefined {
  const value: unknown = metadata.length > 65_536 ? undefined : JSON.parse(metadata)
  if (typeof value !== 'object' || value === null || !('nextCursor' in value)) return undefined
  const cursor = value.nextCursor
  if (cursor === null || cursor === '') return undefined
  if (typeof cursor !== 'string' || cursor.length > MAX_CURSOR)
    throw new ThvError('source_failed', 'the cursor of the page is no text that could be sent back')
  return cursor
}
