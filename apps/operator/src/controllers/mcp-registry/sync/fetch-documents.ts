import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FilterConfig } from '@thv/catalog/filters'
import { mergeDocuments } from '@thv/catalog/merge/merge-documents'
import { type DocumentReading, readDocument } from '@thv/catalog/merge/read-document'
import type { RegistryDocument } from '@thv/catalog/merge/registry-document'
import { shardDocument } from '@thv/catalog/shards/shards'
import { checkSourceConfig, type SourceConfig, type SourceType } from '@thv/catalog/sources/fetch/source-config'
import { createHandlers } from '@thv/catalog/sources/handlers'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { FETCH_LIMITS, type FetchFailure, type FetchJob, type FetchOutcome } from './fetch-job.ts'

/** Fetches a source and gives the data to store, in the source's own format. Never rejects. */
export async function fetchDocuments(job: FetchJob, signal: AbortSignal): Promise<FetchOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-registry-sync-'))
  try {
    const source = await sourceConfig(job, folder)
    if ('ok' in source) return source
    const read = await fetchOne(job, source, { folder, signal })
    return 'problem' in read ? { ok: false, reason: 'InvalidData', message: read.problem } : storedData(read, job.filter)
  } catch (error) {
    const reason = isThvError(error, 'source_limit') ? 'StorageTooLarge' : 'FetchFailed'
    return { ok: false, reason, message: errorMessage(error) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The data of a document after its filter, spread over as many ConfigMaps as it needs. Pure. */
export function storedData(reading: DocumentReading, filter: FilterConfig | undefined): FetchOutcome {
  if (!reading.ok) return { ok: false, reason: 'InvalidData', message: reading.problem }
  const { format } = reading.document
  const merge = mergeDocuments([{ name: 'source', priority: 0, document: reading.document }], { format, strategy: 'priority', filter })
  if (merge.kind !== 'merged') return { ok: false, reason: 'InvalidData', message: 'names are not unique' }
  const sharding = shardDocument(merge.document)
  if (!sharding.ok)
    return {
      ok: false,
      reason: 'StorageTooLarge',
      message: `${sharding.bytes} bytes do not fit into 16 ConfigMaps: set spec.filter, or use spec.registries, which needs none`,
    }
  const { texts } = sharding
  return { ok: true, texts, servers: merge.document.entries.length, left: reading.problems.length, hash: hashOfTexts(texts) }
}

/** Of all stored texts, in their places. */
export function hashOfTexts(texts: readonly (string | undefined)[]): string {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(`\n${text ?? ''}`)
  return hash.digest('hex')
}

async function sourceConfig({ source, password }: FetchJob, folder: string): Promise<SourceConfig | FetchFailure> {
  const { git, api, format } = source
  const { auth, ...plain } = git ?? {}
  const passwordFile = join(folder, 'password')
  if (auth !== undefined) await writeFile(passwordFile, password ?? '', { mode: 0o600 })
  const block = git ? { git: { ...plain, ...(auth && { auth: { username: auth.username, passwordFile } }) }, format } : { api }
  const check = checkSourceConfig({ name: 'source', ...block }, { path: '', fromApi: false })
  if (check.ok) return check.source
  const message = check.problems.map(({ pointer, message: why }) => `spec.source${pointer.replaceAll('/', '.')} ${why}`).join('; ')
  return { ok: false, reason: 'ValidationFailed', message }
}

async function fetchOne(
  job: FetchJob,
  source: SourceConfig,
  { folder, signal }: { folder: string; signal: AbortSignal },
): Promise<DocumentReading | { problem: string }> {
  await using outbound = createOutbound()
  const type: SourceType = source.git === undefined ? 'api' : 'git'
  const files: Uint8Array[] = []
  const result = await createHandlers({ outbound })[type].fetchRegistry(source, {
    signal,
    clock: systemClock,
    state: undefined,
    limits: FETCH_LIMITS,
    memo: new Map(),
    warn: () => {},
    allowPrivateAddresses: !job.remotes.denyPrivate,
    allowLoopback: job.remotes.allowLoopback,
    blockedAddresses: job.remotes.blockedAddresses,
    tempDir: folder,
    onFile: (content) => void files.push(content),
  })
  if (result.kind !== 'full') return { problem: 'the source gave no data' }
  const [file] = files
  if (type === 'git') return file === undefined ? { problem: 'the repository has no such file' } : readDocument(file, job.source.format)
  const entries = result.entries
    .filter(({ status }) => status !== 'deleted')
    .map(({ name, version, text, tags }) => ({ name, version, field: 'servers', text, tags }) as const)
  const document: RegistryDocument = { format: 'upstream', entries, groups: [] }
  return { ok: true, document, problems: [] }
}
