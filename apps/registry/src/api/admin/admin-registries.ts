import { sendEmpty } from '@thv/http/server/respond'
import { registryNameProblem } from '../../config/registry-name.ts'
import type { RegistryRecord, RegistrySpec } from '../../store/registry-store.ts'
import { ApiError } from '../http/api-error.ts'
import { sendList } from '../http/long-list.ts'
import { maySee, mustSet } from '../http/managed-source.ts'
import { badBody, readJson, readMembers } from '../http/request-body.ts'
import type { ApiRequest } from '../http/route.ts'
import { sendText } from '../http/writes.ts'
import { visibleSources } from './admin-sources.ts'
import { readClaims } from './claims-body.ts'

export async function listRegistries(request: ApiRequest): Promise<void> {
  const registries = (await request.api.engine.admin.registries()).filter((registry) => sees(request, registry))
  sendText(request, JSON.stringify({ registries: registries.map(registryInfo) }))
}

export async function getRegistry(request: ApiRequest): Promise<void> {
  sendText(request, JSON.stringify(registryInfo(await visibleRegistry(request))))
}

export async function putRegistry(request: ApiRequest): Promise<void> {
  const { admin } = request.api.engine
  const { name } = request.params
  const problem = registryNameProblem(name)
  const { value } = await readJson(request)
  const body = readMembers(value, ['sources', 'claims'], (reader) => ({
    sources: reader.texts('sources', { required: true, min: 1, unique: true }) ?? [],
    claims: readClaims(reader),
  }))
  const existing = (await admin.registries()).find(({ spec }) => spec.name === name)
  if (existing === undefined && problem !== undefined) throw new ApiError(400, `invalid registry name: ${problem}`)
  if (existing !== undefined && !sees(request, existing)) throw new ApiError(403, 'forbidden: insufficient claims for registry')
  if (existing !== undefined) mustBeOurs(existing)
  mustSet(request, body.claims)
  await checkSources(request, body.sources)
  const spec: RegistrySpec = { name, sources: body.sources, ...(body.claims && { claims: body.claims }) }
  const { created } = await admin.putRegistry(spec)
  const saved = (await admin.registries()).find((registry) => registry.spec.name === name)
  if (saved === undefined) throw new ApiError(409, 'the registry was deleted meanwhile')
  sendText(request, JSON.stringify(registryInfo(saved)), created ? 201 : 200)
}

export async function deleteRegistry(request: ApiRequest): Promise<void> {
  mustBeOurs(await visibleRegistry(request))
  await request.api.engine.admin.deleteRegistry(request.params.name)
  sendEmpty(request.exchange, 204)
}

/** Of all its sources, in their order, whether or not another source hides them. */
export async function listRegistryEntries(request: ApiRequest): Promise<void> {
  const { spec } = await visibleRegistry(request)
  const { admin } = request.api.engine
  const claims = new Map((await admin.sources()).map(({ config }) => [config.name, config.claims]))
  const rows: unknown[] = []
  for (const [position, sourceName] of spec.sources.entries()) {
    for (const entry of await admin.entriesOf(sourceName)) {
      if (entry.status === 'deleted' || !maySee(request, entry.claims ?? claims.get(sourceName))) continue
      const { claims: _, ...shown } = entry
      rows.push({ entryType: 'MCP', ...shown, sourceName, position })
    }
  }
  await sendList(request, 'entries', rows)
}

function mustBeOurs({ creation }: RegistryRecord): void {
  if (creation === 'CONFIG') throw new ApiError(403, 'cannot modify config-created registry via API')
}

async function checkSources(request: ApiRequest, names: readonly string[]): Promise<void> {
  // A source that the caller cannot see does not exist for them.
  const known = new Set((await visibleSources(request)).map(({ config }) => config.name))
  const problems = names.flatMap((name, i) => (known.has(name) ? [] : [{ pointer: `/sources/${i}`, message: 'is not a source' }]))
  if (problems.length > 0) throw badBody(problems)
}

async function visibleRegistry(request: ApiRequest): Promise<RegistryRecord> {
  const found = (await request.api.engine.admin.registries()).find(({ spec }) => spec.name === request.params.name)
  if (found === undefined || !sees(request, found)) throw new ApiError(404, 'registry not found')
  return found
}

function sees(request: ApiRequest, { spec }: RegistryRecord): boolean {
  return maySee(request, spec.claims)
}

function registryInfo({ spec, creation, createdAt, updatedAt }: RegistryRecord) {
  const { name, sources, claims } = spec
  return { name, sources, ...(claims && { claims }), creationType: creation, createdAt, updatedAt }
}
