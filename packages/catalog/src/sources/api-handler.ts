import { createHash } from 'node:crypto'
import type { Outbound } from '@thv/http/outbound'
import type { BackoffOptions } from '@thv/kernel/backoff'
import { parseDuration } from '@thv/kernel/duration'
import { ThvError } from '@thv/kernel/errors'
import { compareCodePoints } from '../text.ts'
import { PageRefused, type PageSettings, readPage } from './api-pages.ts'
import { readHeadersFile } from './headers-file.ts'
import { createPageCollector, type PageCollector } from './page-collector.ts'
import type { FetchContext, FetchedEntry, FetchResult, FetchState, RegistryHandler } from './registry-handler.ts'
import type { SourceConfig } from './source-config.ts'
import { sourceHash, stateIdentity } from './source-hash.ts'
import { withinTimeLimit } from './time-limit.ts'
import { refuseUnusable } from './unusable.ts'
import { validateSource } from './validate-source.ts'

export interface ApiHandlerOptions {
  readonly outbound: Outbound
  /** Between the tries of one page. */
  readonly backoff?: BackoffOptions
}

const PAGE_LIMIT = '100'
const DEFAULT_TIMEOUT_MS = 10_000
/** Asked for once more, since clocks and transactions of the other registry need not agree with the order in which they appear. */
const OVERLAP_MS = 5 * 60_000
/** What was removed without a trace is found by reading everything again. */
const FULL_EVERY_MS = 24 * 3_600_000

/** Another MCP registry: everything at first, then what changed since. */
export function createApiHandler({ outbound, backoff = { baseMs: 500, maxMs: 10_000 } }: ApiHandlerOptions): RegistryHandler {
  function fetchRegistry(source: SourceConfig, context: FetchContext): Promise<FetchResult> {
    const key = `api ${stateIdentity(source)}`
    const known = context.memo.get(key) as Promise<FetchResult> | undefined
    const result = known ?? withinTimeLimit(context, (limited) => load({ outbound, backoff }, source, limited))
    context.memo.set(key, result)
    return result
  }
  return {
    validate: validateSource,
    fetchRegistry,
    currentHash: async (source, context) => (await fetchRegistry(source, context)).hash,
  }
}

async function load(options: Required<ApiHandlerOptions>, source: SourceConfig, context: FetchContext): Promise<FetchResult> {
  const { endpoint = '', timeout, headersFile } = source.api ?? {}
  const settings: PageSettings = {
    endpoint,
    headers: headersFile === undefined ? [] : await readHeadersFile(headersFile),
    timeoutMs: timeout === undefined ? DEFAULT_TIMEOUT_MS : parseDuration(timeout),
    strict: source.strict ?? false,
    backoff: options.backoff,
  }
  const startedAt = context.clock.now()
  const before = usableState(source, context)
  const reading = { source, context, startedAt, read: (since?: number) => readAll(options.outbound, settings, { context, since }) }
  if (before === undefined) return full(reading, await reading.read())
  const changed = await changedSince(reading, before)
  return changed ?? full(reading, await reading.read())
}

interface Reading {
  readonly source: SourceConfig
  readonly context: FetchContext
  /** Epoch, our clock. */
  readonly startedAt: number
  readonly read: (since?: number) => Promise<PageCollector>
}

/** Undefined when the registry does not take the question. */
async function changedSince(reading: Reading, before: ApiState): Promise<FetchResult | undefined> {
  const { source, context } = reading
  let found: PageCollector
  try {
    found = await reading.read(before.since)
  } catch (error) {
    if (!(error instanceof PageRefused) || (error.status !== 400 && error.status !== 422)) throw error
    context.warn(`${source.name}: the registry does not take updated_since (HTTP ${error.status}); everything is read instead`)
    return undefined
  }
  // Whoever sends older ones does not know the question and has sent everything it has.
  if (found.entries.some((entry) => updatedMs(entry) < before.since)) return full(reading, found)
  const window = digest(found.entries)
  if (window === before.window) return { kind: 'unchanged', hash: before.hash, state: { ...before } }
  const hash = sourceHash(source, [before.hash, window])
  const state = nextState({ reading, entries: found.entries, hash, fullAt: before.fullAt, atLeast: before.since })
  return { kind: 'delta', entries: found.entries, problems: found.problems, hash, state }
}

function full(reading: Reading, found: PageCollector): FetchResult {
  const { source, context, startedAt } = reading
  refuseUnusable(found, { files: 0, badFiles: 0 })
  const { entries, problems } = found
  const hash = sourceHash(source, sorted(entries).map(contentOf))
  const state = nextState({ reading, entries, hash, fullAt: startedAt, atLeast: undefined })
  if (context.state?.['hash'] === hash) return { kind: 'unchanged', hash, state }
  return { kind: 'full', entries, problems, hash, state }
}

interface PagesQuery {
  readonly context: FetchContext
  /** Epoch ms; undefined reads everything. */
  readonly since: number | undefined
}

async function readAll(outbound: Outbound, settings: PageSettings, { context, since }: PagesQuery): Promise<PageCollector> {
  const { maxPages, maxEntries } = context.limits
  const found = createPageCollector(maxEntries)
  const asked = since === undefined ? {} : { updated_since: new Date(since).toISOString(), include_deleted: 'true' }
  const cursors = new Set<string>()
  let cursor: string | undefined
  for (let pages = 0; ; pages += 1) {
    if (pages === maxPages) throw new ThvError('source_limit', `${settings.endpoint} has more than ${maxPages} pages`)
    const parameters = { limit: PAGE_LIMIT, ...asked, ...(cursor === undefined ? {} : { cursor }) }
    const page = await readPage(outbound, settings, { parameters, context })
    const fresh = found.take(page.readings)
    cursor = page.nextCursor
    if (cursor === undefined) return found
    if (cursors.has(cursor))
      throw new ThvError('source_failed', `${settings.endpoint} leads in a circle: page ${pages + 1} gives a cursor that came before`)
    cursors.add(cursor)
    if (!fresh && found.idlePages === MAX_IDLE_PAGES)
      throw new ThvError(
        'source_failed',
        `${settings.endpoint} leads in a circle: ${MAX_IDLE_PAGES} pages one after the other had nothing new`,
      )
  }
}

const MAX_IDLE_PAGES = 3

type ApiState = FetchState & {
  readonly identity: string
  readonly hash: string
  /** What changed after this is asked for next; epoch ms, by the other registry's clock. */
  readonly since: number
  /** When everything was read; epoch ms, our clock. */
  readonly fullAt: number
  /** Of the entries that the next question brings if nothing changes. */
  readonly window: string
}

function usableState(source: SourceConfig, { state, clock }: FetchContext): ApiState | undefined {
  const { identity, hash, since, fullAt, window } = state ?? {}
  if (identity !== stateIdentity(source)) return undefined
  if (typeof hash !== 'string' || typeof since !== 'number' || typeof fullAt !== 'number' || typeof window !== 'string') return undefined
  const age = clock.now() - fullAt
  return age >= 0 && age < FULL_EVERY_MS ? { identity, hash, since, fullAt, window } : undefined
}

interface StateParts {
  readonly reading: Reading
  readonly entries: readonly FetchedEntry[]
  readonly hash: string
  readonly fullAt: number
  readonly atLeast: number | undefined
}

/** Without times of the other registry there is nothing to ask with: then everything is read each time. */
function nextState({ reading, entries, hash, fullAt, atLeast }: StateParts): FetchState {
  const identity = stateIdentity(reading.source)
  const times = entries.map(updatedMs)
  if (times.includes(Number.NEGATIVE_INFINITY)) return { identity, hash, fullAt }
  const newest = times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
  // A time that is yet to come would hide all that changes until then.
  const since = Math.max(Math.min(newest, reading.startedAt) - OVERLAP_MS, atLeast ?? Number.NEGATIVE_INFINITY)
  if (!Number.isFinite(since)) return { identity, hash, fullAt }
  const window = digest(entries.filter((entry) => updatedMs(entry) > since))
  return { identity, hash, since, fullAt, window }
}

function updatedMs({ updatedAt }: FetchedEntry): number {
  const time = Date.parse(updatedAt ?? '')
  return Number.isNaN(time) ? Number.NEGATIVE_INFINITY : time
}

function digest(entries: readonly FetchedEntry[]): string {
  const hash = createHash('sha256')
  for (const entry of sorted(entries)) hash.update(`${contentOf(entry)}${JSON.stringify(entry.updatedAt ?? null)}\n`)
  return hash.digest('hex')
}

function sorted(entries: readonly FetchedEntry[]): FetchedEntry[] {
  return entries.toSorted((a, b) => compareCodePoints(a.name, b.name) || compareCodePoints(a.version, b.version))
}

/** One line; each part ends where the next begins. */
function contentOf({ name, version, text, status, statusMessage, publishedAt }: FetchedEntry): string {
  return `${JSON.stringify([name, version, status ?? null, statusMessage ?? null, publishedAt ?? null])}${text}\n`
}
