import { type HeaderMap, headerText, isHeaderValue } from '@thv/http/header-map'
import type { Outbound } from '@thv/http/outbound/outbound'
import { parseDuration } from '@thv/kernel/duration'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { download, shownUrl } from '../fetch/download.ts'
import { oncePerAttempt } from '../fetch/once-per-attempt.ts'
import type { FetchContext, FetchResult, FetchState, RegistryHandler } from '../fetch/registry-handler.ts'
import type { FileSource, SourceConfig } from '../fetch/source-config.ts'
import { sourceHash, stateIdentity } from '../fetch/source-hash.ts'
import { withinTimeLimit } from '../fetch/time-limit.ts'
import { refuseUnusable } from '../fetch/unusable-source.ts'
import { validateSource } from '../fetch/validate-source.ts'
import { createEntryCollector } from '../format/entry-collector.ts'
import { parseRegistryInTurns } from '../format/parse-registry-text.ts'
import { readLocalFiles } from './local-files.ts'

/** Registry files: of this machine, at an address, or in the configuration itself. */
export function createFileHandler(outbound: Outbound): RegistryHandler {
  const loaded = (source: SourceConfig, context: FetchContext): Promise<Loaded> =>
    oncePerAttempt(context, `file ${stateIdentity(source)}`, () => withinTimeLimit(context, (limited) => load(outbound, source, limited)))

  async function fetched(source: SourceConfig, context: FetchContext): Promise<FetchResult> {
    const { hash, state, take } = await loaded(source, context)
    if (take === undefined || context.state?.['hash'] === hash) return { kind: 'unchanged', hash, state }
    return { kind: 'full', hash, state, ...(await parsePieces(source, take(), context)) }
  }

  return {
    validate: validateSource,
    currentHash: async (source, context) => (await loaded(source, context)).hash,
    fetchRegistry: (source, context) => oncePerAttempt(context, `entries ${stateIdentity(source)}`, () => fetched(source, context)),
  }
}

interface Loaded {
  readonly hash: string
  readonly state: FetchState
  /** Hands the data over, so that they are released while the entries are worked on. Undefined: as at the time of the state. */
  readonly take: (() => readonly Piece[]) | undefined
}

interface Piece {
  /** A file of several. */
  readonly name: string | undefined
  /** A text says why there is none. */
  readonly content: Buffer | string
}

const DEFAULT_TIMEOUT_MS = 30_000

async function load(outbound: Outbound, source: SourceConfig, context: FetchContext): Promise<Loaded> {
  const file = source.file ?? {}
  if (file.url !== undefined) return loadUrl(outbound, { source, file, url: file.url }, context)
  const pieces: Piece[] = file.path === undefined ? [inline(file, context)] : await readLocalFiles(file.path, context)
  const hash = hashOf(source, pieces)
  return { hash, state: { hash }, take: () => pieces.splice(0) }
}

function inline({ data = '' }: FileSource, { limits }: FetchContext): Piece {
  const content = Buffer.from(data)
  if (content.length > limits.maxBytes) throw new ThvError('source_limit', `the document is larger than ${limits.maxBytes} bytes`)
  return { name: undefined, content }
}

interface Addressed {
  readonly source: SourceConfig
  readonly file: FileSource
  readonly url: string
}

async function loadUrl(outbound: Outbound, { source, file, url }: Addressed, context: FetchContext): Promise<Loaded> {
  const identity = stateIdentity(source)
  const before = context.state?.['identity'] === identity ? context.state : undefined
  const timeoutMs = file.timeout === undefined ? DEFAULT_TIMEOUT_MS : parseDuration(file.timeout)
  const conditions = conditionsOf(before)
  const answer = await download(outbound, { url, conditions, maxBytes: context.limits.maxBytes, timeoutMs }, context)
  const known = before?.['hash']
  if (answer.status === 304 && before !== undefined && typeof known === 'string' && conditions.length > 0)
    return { hash: known, state: before, take: undefined }
  if (answer.status !== 200) throw new ThvError('source_failed', `HTTP ${answer.status} for ${answer.shownUrl}`)
  const pieces = [{ name: undefined, content: answer.body }]
  const hash = hashOf(source, pieces)
  return { hash, state: { identity, hash, ...validators(answer.headers) }, take: () => pieces.splice(0) }
}

function conditionsOf(state: FetchState | undefined): readonly string[] {
  const etag = state?.['etag']
  if (typeof etag === 'string') return ['if-none-match', etag]
  const lastModified = state?.['lastModified']
  return typeof lastModified === 'string' ? ['if-modified-since', lastModified] : []
}

/** A date of seconds tells two versions of one second apart only when it was no longer that second (RFC 9110 §8.8.2.2). */
function validators(headers: HeaderMap): { etag?: string; lastModified?: string } {
  const usable = (text: string | undefined): text is string => text !== undefined && text.length <= 1_024 && isHeaderValue(text)
  const etag = headerText(headers['etag'])
  if (usable(etag)) return { etag }
  const lastModified = headerText(headers['last-modified'])
  const age = Date.parse(headerText(headers['date']) ?? '') - Date.parse(lastModified ?? '')
  return usable(lastModified) && age >= 60_000 ? { lastModified } : {}
}

function hashOf(source: SourceConfig, pieces: readonly Piece[]): string {
  return sourceHash(
    source,
    pieces.flatMap(({ name, content }) => [name ?? '', content]),
  )
}

async function parsePieces(source: SourceConfig, pieces: readonly Piece[], context: FetchContext) {
  const into = createEntryCollector(context.limits.maxEntries)
  const { format, strict } = source
  let badFiles = 0
  const files = pieces.length
  for (const { name, content } of pieces) {
    const problem = typeof content === 'string' ? content : await parsePiece(name, content)
    if (problem === undefined) continue
    badFiles += 1
    into.leaveOut(name ?? '', problem)
  }
  if (files === 0) into.warn('', [{ pointer: '', message: 'the folder has no .json file in it' }])
  refuseUnusable(into, { files, badFiles })
  return { entries: into.entries, problems: into.problems }

  /** Of several files a bad one is left out alone; a limit is one of the whole source. */
  async function parsePiece(file: string | undefined, bytes: Buffer): Promise<string | undefined> {
    context.onFile?.(bytes)
    try {
      await parseRegistryInTurns(bytes, { format, strict, file, into }, context.signal)
      return undefined
    } catch (error) {
      if (file === undefined || !isThvError(error, 'source_failed')) throw named(error, source)
      return errorMessage(error)
    }
  }
}

function named(error: unknown, { file }: SourceConfig): unknown {
  if (!isThvError(error, 'source_failed')) return error
  const place = file?.path ?? (file?.url === undefined ? 'data' : shownUrl(file.url))
  return new ThvError('source_failed', `${place}: ${error.message}`)
}
