import type { Json } from '@thv/catalog/catalog-entry'
import { isJsonObject } from '@thv/catalog/json-guard'
import { checkSourceConfig, type SourceConfig, sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import { sendEmpty } from '@thv/http/server/respond'
import { formatDuration } from '@thv/kernel/duration'
import type { SourceRecord } from '../../store/registry-store.ts'
import { ApiError, reworded } from '../http/api-error.ts'
import { sendList } from '../http/long-list.ts'
import { maySee, mustSet } from '../http/managed-source.ts'
import { badBody, readJson } from '../http/request-body.ts'
import type { ApiRequest } from '../http/route.ts'
import { sendText } from '../http/writes.ts'

export async function listSources(request: ApiRequest): Promise<void> {
  const sources = await visibleSources(request)
  sendText(request, JSON.stringify({ sources: sources.map((source) => sourceInfo(source, { withData: false })) }))
}

export async function getSource(request: ApiRequest): Promise<void> {
  sendText(request, JSON.stringify(sourceInfo(await visibleSource(request), { withData: true })))
}

export async function putSource(request: ApiRequest): Promise<void> {
  const { admin } = request.api.engine
  const { name } = request.params
  const { value } = await readJson(request)
  if (!isJsonObject(value as Json)) throw badBody([{ pointer: '', message: 'must be an object' }])
  if (Object.hasOwn(value as object, 'name')) throw badBody([{ pointer: '/name', message: 'stands in the path' }])
  const check = checkSourceConfig({ name, ...(value as object) }, { path: '', fromApi: true, allowedFolders: request.api.allowedFolders })
  if (!check.ok) throw badBody(check.problems)
  const existing = (await admin.sources()).find(({ config }) => config.name === name)
  // A caller that cannot see it learns nothing about it, and cannot replace it either.
  if (existing !== undefined && !sees(request, existing)) throw new ApiError(403, 'forbidden: insufficient claims for source')
  if (existing !== undefined) mustBeOurs(existing)
  mustSet(request, check.source.claims)
  if (existing !== undefined) checkKind(existing.config, check.source)
  const { created } = await reworded(admin.putSource(check.source), 'conflict', 'there is a managed source already')
  const saved = (await admin.sources()).find(({ config }) => config.name === name)
  if (saved === undefined) throw new ApiError(409, 'the source was deleted meanwhile')
  sendText(request, JSON.stringify(sourceInfo(saved, { withData: false })), created ? 201 : 200)
}

export async function deleteSource(request: ApiRequest): Promise<void> {
  mustBeOurs(await visibleSource(request))
  await reworded(request.api.engine.admin.deleteSource(request.params.name), 'conflict', 'a registry uses this source')
  sendEmpty(request.exchange, 204)
}

export async function syncSource(request: ApiRequest): Promise<void> {
  const { config } = await visibleSource(request)
  if (config.managed !== undefined) throw new ApiError(400, 'a managed source is never fetched: there is nothing to sync')
  await request.api.engine.admin.requestSync(config.name)
  sendText(request, JSON.stringify({ message: 'the source is synced as soon as possible' }), 202)
}

/** Those that the caller sees, grouped by name, whatever other sources say. */
export async function listSourceEntries(request: ApiRequest): Promise<void> {
  const source = await visibleSource(request)
  const entries = await request.api.engine.admin.entriesOf(source.config.name)
  const groups: Group[] = []
  for (const { name, claims, ...version } of entries) {
    if (version.status === 'deleted' || !maySee(request, claims ?? source.config.claims)) continue
    const last = groups.at(-1)
    if (last?.name === name) last.versions.push(version)
    else groups.push({ entryType: 'MCP', name, ...(claims && { claims }), versions: [version] })
  }
  await sendList(request, 'entries', groups)
}

interface Group {
  readonly entryType: 'MCP'
  readonly name: string
  readonly claims?: SourceConfig['claims']
  readonly versions: unknown[]
}

export async function visibleSources(request: ApiRequest): Promise<readonly SourceRecord[]> {
  return (await request.api.engine.admin.sources()).filter((source) => sees(request, source))
}

async function visibleSource(request: ApiRequest): Promise<SourceRecord> {
  const source = (await visibleSources(request)).find(({ config }) => config.name === request.params.name)
  if (source === undefined) throw new ApiError(404, 'source not found')
  return source
}

function sees(request: ApiRequest, source: SourceRecord): boolean {
  return maySee(request, source.config.claims)
}

function mustBeOurs({ creation }: SourceRecord): void {
  if (creation === 'CONFIG') throw new ApiError(403, 'cannot modify config-created source via API')
}

function checkKind(before: SourceConfig, after: SourceConfig): void {
  const [was, is] = [sourceTypeOf(before), sourceTypeOf(after)]
  if (was !== is) throw new ApiError(400, `changing source type is not allowed: it is ${was}, delete it first to make it ${is}`)
  const [kind, other] = [fileKind(before), fileKind(after)]
  if (kind !== other) throw new ApiError(400, `changing a file source from ${kind} to ${other} is not allowed: delete it first`)
}

function fileKind({ file }: SourceConfig): string | undefined {
  return file && (['path', 'url', 'data'] as const).find((kind) => file[kind] !== undefined)
}

/** Passwords and queries of addresses, which may hold tokens, are never repeated; inline documents not in lists. */
function sourceInfo({ config, creation, createdAt, updatedAt, sync }: SourceRecord, options: { withData: boolean }) {
  const type = sourceTypeOf(config)
  return {
    name: config.name,
    type,
    sourceType: type,
    creationType: creation,
    sourceConfig: shownConfig(config, options),
    ...(config.format && { format: config.format }),
    ...(config.strict !== undefined && { strict: config.strict }),
    ...(config.filter && { filterConfig: config.filter }),
    ...(config.intervalMs !== undefined && { syncSchedule: formatDuration(config.intervalMs) }),
    ...(config.claims && { claims: config.claims }),
    syncStatus: {
      phase: sync.phase,
      ...(sync.lastSuccess && { lastSyncTime: sync.lastSuccess }),
      ...(sync.lastAttempt && { lastAttempt: sync.lastAttempt }),
      attemptCount: sync.attemptCount,
      serverCount: sync.serverCount,
      message: sync.message,
      problemCount: sync.problemCount,
      problems: sync.problems,
    },
    createdAt,
    updatedAt,
  }
}

function shownConfig(config: SourceConfig, { withData }: { withData: boolean }): object {
  if (config.git) return { ...config.git, repository: withoutSecrets(config.git.repository) }
  if (config.api) return { ...config.api, endpoint: withoutSecrets(config.api.endpoint) }
  if (!config.file) return {}
  const { data, url, ...rest } = config.file
  return { ...rest, ...(url !== undefined && { url: withoutSecrets(url) }), ...(withData && data !== undefined && { data }) }
}

function withoutSecrets(address: string): string {
  const [place = ''] = address.split('?', 1)
  const hidden = place === address ? '' : '?…'
  const url = URL.parse(place)
  if (url === null || (url.username === '' && url.password === '')) return `${place}${hidden}`
  url.username = ''
  url.password = ''
  return `${url.href}${hidden}`
}
