import type { EntryStatus } from '@thv/catalog/catalog-entry'
import { responseMeta, wrapDocumentText } from '@thv/catalog/official-envelope'
import { compareVersions } from '@thv/catalog/version-order'
import { sendBytes } from '@thv/http/server/respond'
import type { NewEntry, StatusChange, StoredEntry } from '../../store/registry-store.ts'
import { ApiError, reworded } from './api-error.ts'
import { asSeen, managedSourceOf, mustBeServed, mustSee, mustSetName } from './managed-source.ts'
import { badBody, readDocument, readJson, readMembers } from './request-body.ts'
import type { ApiRequest } from './route.ts'

export async function publishServer(request: ApiRequest): Promise<void> {
  const source = await managedSourceOf(request)
  const body = await readJson(request)
  const { name, version } = readDocument(body.value)
  mustSee(request, source.config.claims)
  const claims = await mustSetName(request, source, name)
  await mustBeServed(request, source, name)
  await sendEntry(request, await publishNew(request, { source: source.config.name, name, version, text: body.text(), ...claims }))
}

export function publishNew({ api }: ApiRequest, entry: NewEntry): Promise<StoredEntry> {
  return reworded(api.engine.admin.publish(entry), 'version_exists', `version already exists: ${entry.name}@${entry.version}`)
}

/** Another document for a version that is there. */
export async function replaceVersion(request: ApiRequest): Promise<void> {
  const { serverName, version } = specific(request)
  const source = await managedSourceOf(request)
  const body = await readJson(request)
  const document = readDocument(body.value)
  const problems = [
    ...(document.name === serverName ? [] : [{ pointer: '/name', message: `must be the name in the path, ${serverName}` }]),
    ...(document.version === version ? [] : [{ pointer: '/version', message: `must be the version in the path, ${version}` }]),
  ]
  if (problems.length > 0) throw badBody(problems)
  const claims = await mustSetName(request, source, serverName)
  const entry = await request.api.engine.admin.replaceDocument({
    source: source.config.name,
    name: serverName,
    version,
    text: body.text(),
    ...claims,
  })
  await sendEntry(request, entry)
}

export async function deleteVersion(request: ApiRequest): Promise<void> {
  const { serverName, version } = specific(request)
  const source = await managedSourceOf(request)
  const current = await versionOf(request, source.config.name)
  mustSee(request, current.claims ?? source.config.claims)
  const change = { source: source.config.name, name: serverName, version, status: 'deleted', ifLiving: true, ...asSeen(current) } as const
  const [entry] = await reworded(request.api.engine.admin.setStatus(change), 'not_found', 'server version not found')
  await sendEntry(request, entry ?? current)
}

/** Also brings back what was deleted. */
export async function setVersionStatus(request: ApiRequest): Promise<void> {
  const { serverName, version } = specific(request)
  const source = await managedSourceOf(request)
  const change = readStatus((await readJson(request)).value)
  const current = await versionOf(request, source.config.name)
  mustSee(request, current.claims ?? source.config.claims)
  const [entry] = await changeStatus(request, { source: source.config.name, name: serverName, version, ...change, ...asSeen(current) })
  await sendEntry(request, entry ?? current)
}

export async function setServerStatus(request: ApiRequest): Promise<void> {
  const { serverName } = request.params
  const { admin } = request.api.engine
  const source = await managedSourceOf(request)
  const change = readStatus((await readJson(request)).value)
  const versions = await admin.versionsOf(source.config.name, serverName)
  if (versions.length === 0) throw new ApiError(404, 'server not found')
  mustSee(request, versions[0]?.claims ?? source.config.claims)
  const entries = await changeStatus(request, { source: source.config.name, name: serverName, ...change, ...asSeen(versions[0]) })
  const latest = latestOf(await admin.versionsOf(source.config.name, serverName))
  const servers = entries.map((entry) => envelope(entry, latest)).join(',')
  sendText(request, `{"updatedCount":${entries.length},"servers":[${servers}]}`)
}

function changeStatus({ api }: ApiRequest, change: StatusChange): Promise<readonly StoredEntry[]> {
  const message = `no changes to apply: status is already ${change.status}`
  return reworded(api.engine.admin.setStatus({ ...change, ifOther: true }), 'bad_request', message)
}

/** The entry as a read of the managed source alone would show it: another source of the registry may hide it. */
async function sendEntry(request: ApiRequest, entry: StoredEntry): Promise<void> {
  const versions = await request.api.engine.admin.versionsOf(entry.source, entry.name)
  sendText(request, envelope(entry, latestOf(versions)))
}

function specific({ params }: ApiRequest): ApiRequest['params'] {
  if (params.version === 'latest') throw new ApiError(400, 'version must be a specific one to be written, not latest')
  return params
}

async function versionOf({ api, params }: ApiRequest, source: string): Promise<StoredEntry> {
  const versions = await api.engine.admin.versionsOf(source, params.serverName)
  const found = versions.find(({ version }) => version === params.version)
  if (found === undefined) throw new ApiError(404, 'server version not found among those that were published here')
  return found
}

interface NewStatus {
  readonly status: EntryStatus
  readonly statusMessage?: string
}

function readStatus(value: unknown): NewStatus {
  return readMembers(value, ['status', 'statusMessage'], (reader) => {
    const status = reader.text('status', { required: true, oneOf: ['active', 'deprecated', 'deleted'] }) as EntryStatus
    const message = reader.text('statusMessage', { max: 500 })
    if (status === 'active' && message !== undefined) reader.problem('statusMessage', 'cannot be given with status active')
    return message === undefined || message === '' ? { status } : { status, statusMessage: message }
  })
}

function latestOf(versions: readonly StoredEntry[]): string | undefined {
  let latest: string | undefined
  for (const { version, status } of versions) {
    if (status !== 'deleted' && (latest === undefined || compareVersions(version, latest) > 0)) latest = version
  }
  return latest
}

function envelope(entry: StoredEntry, latest: string | undefined): string {
  return wrapDocumentText(entry.text, responseMeta({ ...entry, document: {} }, entry.version === latest, { source: entry.source }))
}

export function sendText({ exchange }: ApiRequest, json: string, status = 200): void {
  sendBytes(exchange, status, { type: 'application/json', body: Buffer.from(json), headers: ['Cache-Control', 'no-store'] })
}
