import { serverNameProblem } from '@thv/catalog/server-name'
import { sendEmpty } from '@thv/http/server/respond'
import type { SourceRecord, StoredEntry } from '../../store/registry-store.ts'
import { ApiError, reworded } from '../http/api-error.ts'
import { asSeen, maySee, mustBeServed, mustSee, mustSet, theManagedSource } from '../http/managed-source.ts'
import { readDocument, readJson, readMembers } from '../http/request-body.ts'
import type { ApiRequest } from '../http/route.ts'
import { publishNew, sendText } from '../http/writes.ts'
import { readClaims, sameClaims } from './claims-body.ts'

/** Answers with the document as it is kept. */
export async function publishEntry(request: ApiRequest): Promise<void> {
  const { admin } = request.api.engine
  const source = await theManagedSource(request)
  const json = await readJson(request)
  const body = readMembers(json.value, ['server', 'skill', 'plugin', 'claims'], (reader) => {
    for (const type of ['skill', 'plugin']) if (Object.hasOwn(reader.object, type)) reader.problem(type, `${type}s are not offered`)
    return { server: reader.child('server', { required: true }, () => {}), claims: readClaims(reader) }
  })
  const { name, version } = readDocument(body.server, '/server')
  mustSee(request, source.config.claims)
  if (request.caller.gated && body.claims === undefined) throw new ApiError(400, 'claims are required when authorization is enabled')
  if (body.claims !== undefined) mustSet(request, body.claims)
  await mustBeServed(request, source, name)
  const earlier = await admin.versionsOf(source.config.name, name)
  checkClaims(request, { earlier, claims: body.claims, source })
  // The same claims in another order are the same: those that are kept stay as they are.
  const claims = earlier[0] === undefined ? body.claims : earlier[0].claims
  const entry = await publishNew(request, {
    source: source.config.name,
    name,
    version,
    text: json.memberText('server'),
    ...(claims && { claims }),
    ...(earlier[0] && asSeen(earlier[0])),
  })
  sendText(request, entry.text, 201)
}

export async function deleteEntry(request: ApiRequest): Promise<void> {
  const { name, version } = serverIn(request)
  const { source, versions } = await published(request)
  const current = versions.find((entry) => entry.version === version)
  if (current === undefined) throw new ApiError(404, 'server version not found')
  mustSee(request, current.claims ?? source.config.claims)
  const change = { source: source.config.name, name, version, status: 'deleted', ifLiving: true, ...asSeen(current) } as const
  await reworded(request.api.engine.admin.setStatus(change), 'not_found', 'server version not found')
  sendEmpty(request.exchange, 204)
}

/** Those of the entry itself, else those of its source, which count then. */
export async function getEntryClaims(request: ApiRequest): Promise<void> {
  serverIn(request)
  const { source, versions } = await published(request)
  const claims = versions[0]?.claims ?? source.config.claims
  if (!maySee(request, claims)) throw new ApiError(404, 'server not found')
  sendText(request, JSON.stringify({ claims: claims ?? {} }))
}

export async function putEntryClaims(request: ApiRequest): Promise<void> {
  const { name } = serverIn(request)
  const { value } = await readJson(request)
  const claims = readMembers(value, ['claims'], (reader) => readClaims(reader, { required: true })) ?? {}
  const { source, versions } = await published(request)
  mustSee(request, versions[0]?.claims ?? source.config.claims)
  mustSet(request, claims)
  const change = { source: source.config.name, name, claims, ifLiving: true, ...asSeen(versions[0]) }
  await reworded(request.api.engine.admin.setClaims(change), 'not_found', 'server not found')
  sendEmpty(request.exchange, 204)
}

export function whoAmI(request: ApiRequest): void {
  const { api, caller } = request
  if (api.access.anonymous || caller.anonymous) throw new ApiError(401, 'authentication required')
  sendText(request, JSON.stringify({ subject: caller.subject, roles: [...caller.roles] }))
}

function serverIn({ params }: ApiRequest): ApiRequest['params'] {
  if (params.type === 'skill' || params.type === 'plugin') throw new ApiError(400, `${params.type}s are not offered: type must be server`)
  if (params.type !== 'server') throw new ApiError(400, 'type must be server')
  const problem = serverNameProblem(params.name)
  if (problem !== undefined) throw new ApiError(400, `invalid server name: ${problem}`)
  return params
}

interface Published {
  readonly source: SourceRecord
  readonly versions: readonly StoredEntry[]
}

async function published(request: ApiRequest): Promise<Published> {
  const source = await theManagedSource(request)
  const versions = await request.api.engine.admin.versionsOf(source.config.name, request.params.name)
  if (!versions.some(({ status }) => status !== 'deleted')) throw new ApiError(404, 'server not found')
  return { source, versions }
}

/** All versions of a server have the same claims: they are those of its name. */
function checkClaims(
  { caller }: ApiRequest,
  { earlier, claims, source }: { earlier: readonly StoredEntry[]; claims: StoredEntry['claims']; source: SourceRecord },
): void {
  const [first] = earlier // also a deleted one: a name stays with whom it belonged to
  if (first === undefined || (claims === undefined && !caller.gated)) return
  if (!sameClaims(claims, first.claims ?? source.config.claims))
    throw new ApiError(409, 'claims mismatch: earlier versions of this server have other claims')
}
