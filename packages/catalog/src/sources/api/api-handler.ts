import type { Outbound } from '@thv/http/outbound/outbound'
import type { BackoffOptions } from '@thv/kernel/backoff'
import { parseDuration } from '@thv/kernel/duration'
import { ThvError } from '@thv/kernel/errors'
import { oncePerAttempt } from '../fetch/once-per-attempt.ts'
import type { FetchContext, FetchResult, RegistryHandler } from '../fetch/registry-handler.ts'
import type { SourceConfig } from '../fetch/source-config.ts'
import { sourceHash, stateIdentity } from '../fetch/source-hash.ts'
import { withinTimeLimit } from '../fetch/time-limit.ts'
import { refuseUnusable } from '../fetch/unusable-source.ts'
import { validateSource } from '../fetch/validate-source.ts'
import { PageRefused, type PageSettings, readPage } from './api-pages.ts'
import { type ApiState, contentOf, digest, nextState, silentFrom, silentUntil, sorted, updatedMs, usableState } from './api-state.ts'
import { readHeadersFile } from './headers-file.ts'
import { createPageCollector, type PageCollector } from './page-collector.ts'

export interface ApiHandlerOptions {
  readonly outbound: Outbound
  /** Between the tries of one page. */
  readonly backoff?: BackoffOptions
}

const PAGE_LIMIT = '100'
const DEFAULT_TIMEOUT_MS = 10_000
/** A registry that sends entries older than the requested time by more than this ignores the parameter; less is rounding. */
const TOLERANCE_MS = 60_000

/** Another MCP registry: everything at first, then what changed since. */
export function createApiHandler({ outbound, backoff = { baseMs: 500, maxMs: 10_000 } }: ApiHandlerOptions): RegistryHandler {
  const fetchRegistry = (source: SourceConfig, context: FetchContext): Promise<FetchResult> =>
    oncePerAttempt(context, `api ${stateIdentity(source)}`, () =>
      withinTimeLimit(context, (limited) => load({ outbound, backoff }, source, limited)),
    )
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
  if (before === undefined) return full(reading, await reading.read(), silentUntil(source, context))
  const changed = await changedSince(reading, before)
  return changed ?? full(reading, await reading.read(), silentFrom(startedAt))
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
  // Perhaps it does not know the question and has sent everything; perhaps it has sent some. What did not come is not gone therefore.
  if (found.entries.some((entry) => updatedMs(entry) < before.since - TOLERANCE_MS)) {
    context.warn(`${source.name}: the registry answers updated_since with what is older; everything is read instead`)
    return undefined
  }
  const window = digest(found.entries)
  if (window === before.window) return { kind: 'unchanged', hash: before.hash, state: { ...before } }
  const hash = sourceHash(source, [before.hash, window])
  const { fullAt, since: atLeast } = before
  const state = nextState({ source, entries: found.entries, hash, startedAt: reading.startedAt, fullAt, atLeast })
  return { kind: 'delta', entries: found.entries, problems: found.problems, hash, state }
}

function full(reading: Reading, found: PageCollector, silentUntil: number | undefined): FetchResult {
  const { source, context, startedAt } = reading
  refuseUnusable(found, { files: 0, badFiles: 0 })
  const { entries, problems } = found
  const hash = sourceHash(source, sorted(entries).map(contentOf))
  const state = nextState({ source, entries, hash, startedAt, fullAt: startedAt, silentUntil })
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
    cursor = await readPage(outbound, settings, { parameters, context, take: found.take })
    const idlePages = found.endPage()
    if (cursor === undefined) return found
    if (cursors.has(cursor))
      throw new ThvError('source_failed', `${settings.endpoint} leads in a circle: page ${pages + 1} gives a cursor that came before`)
    cursors.add(cursor)
    if (idlePages === MAX_IDLE_PAGES)
      throw new ThvError(
        'source_failed',
        `${settings.endpoint} leads in a circle: ${MAX_IDLE_PAGES} pages one after the other had nothing new`,
      )
  }
}

const MAX_IDLE_PAGES = 3
