import { bundledCatalog } from '@thv/catalog/bundled/bundled-catalog'
import { knownServers } from '@thv/catalog/discover/entry/known-servers'
import { source } from '@thv/catalog/discover/testing/decision-row'
import { discoverWorld, exportWorld } from '@thv/catalog/discover/testing/export-world'
import { checkServerDocument } from '@thv/catalog/server-document'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, startApi } from '../../../apps/registry/src/api/testing/api-server.ts'
import { createSampleEngine, type SampleEngine } from '../../../apps/registry/src/api/testing/sample-engine.ts'
import { playTable } from '../play-table.ts'
import { requestTable } from '../request-table.ts'
import { brokenDocuments, soundDocuments } from './documents.ts'
import { loadOfficialRegistry, type OfficialRegistry, officialProblem } from './official-module.ts'

const problem = officialProblem()
if (problem !== undefined) console.error(`\n!!! NOT COMPARED WITH THE OFFICIAL REGISTRY: ${problem} !!!\n`)
const describeOfficial = describe.skipIf(problem !== undefined)

let official: OfficialRegistry
let engine: SampleEngine
let api: ApiServer
beforeAll(async () => {
  if (problem === undefined) official = await loadOfficialRegistry()
  engine = await createSampleEngine()
  api = await startApi({ engine })
})
afterAll(async () => {
  await api?.[Symbol.asyncDispose]()
  await engine?.[Symbol.asyncDispose]()
})

const BASE = '/registry/{registryName}'
const pointer = (...parts: string[]) => parts.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')

describeOfficial('the official OpenAPI document', () => {
  it('has no operation that we have not, and no parameter', async () => {
    const { json } = await api.get('/registry/default/openapi.json')
    let operations = 0
    for (const [path, methods] of Object.entries(official.openApi.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        operations++
        const ours = json.paths[path]?.[method]
        expect(ours, `${method} ${path}`).toBeDefined()
        const names = (ours.parameters ?? []).map((parameter: { name: string }) => parameter.name)
        for (const { name } of operation.parameters ?? []) expect(names, `${method} ${path}`).toContain(name)
        expect(ours.requestBody !== undefined, `${method} ${path}`).toBe(operation.requestBody !== undefined)
      }
    }
    expect(operations).toBeGreaterThanOrEqual(8)
  })

  it('fits every answer of ours that it knows: all 2xx, and the errors it lists', async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    addFormats.default(ajv)
    ajv.addSchema({ ...official.openApi, $id: 'official' })
    let checked = 0
    for (const { row, status, json } of await playTable(api, requestTable())) {
      const path = templateOf(row.target)
      const operation = path === undefined ? undefined : official.openApi.paths[path]?.[row.method.toLowerCase()]
      const listed = operation?.responses[String(status)]?.content?.['application/json']
      if (path === undefined || operation === undefined) continue
      if (status < 300) expect(listed, `${row.method} ${row.target} → ${status} is not an answer it knows`).toBeDefined()
      if (listed === undefined) continue
      const place = pointer('paths', path, row.method.toLowerCase(), 'responses', String(status), 'content', 'application/json', 'schema')
      expect(ajv.validate({ $ref: `official#/${place}` }, json), `${row.method} ${row.target} → ${status}: ${ajv.errorsText()}`).toBe(true)
      checked++
    }
    expect(checked).toBeGreaterThan(80)
  })
})

/** `/v0.1/servers/{serverName}/versions` for a target of ours below one registry. */
function templateOf(target: string): string | undefined {
  const rest = /^\/registry\/[^/?]+(\/v0\.1\/[^?]*)/.exec(target)?.[1] ?? /^\/registry(\/v0\.1\/[^?]*)/.exec(target)?.[1]
  return Object.keys(official.openApi.paths).find(
    (path) => rest !== undefined && new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(rest),
  )
}

describeOfficial('the official schemas of server.json', () => {
  const verdicts = (date: string) => {
    const ajv = new Ajv({ strict: false })
    addFormats.default(ajv)
    const schema = official.schemas.get(date)
    if (schema === undefined) throw new Error(`there is no schema of ${date}`)
    return ajv.compile(schema)
  }

  it('accept the bundled catalog, every entry', () => {
    const validate = verdicts('2025-12-11')
    const { servers } = (bundledCatalog as { data: { servers: Record<string, unknown>[] } }).data
    expect(servers.length).toBeGreaterThanOrEqual(25)
    for (const server of servers) expect(validate(server), `${String(server['name'])}: ${JSON.stringify(validate.errors)}`).toBe(true)
  })

  it('accept what is exported from a cluster, new entries and copies, in both modes', () => {
    const validate = verdicts('2025-12-11')
    for (const mode of ['server', 'operator'] as const) {
      const world = exportWorld()
      world.options = { ...world.options, mode }
      const { entries } = discoverWorld(world)
      world.known = knownServers([[source('io.github.stacklok/github', '1.2.0')]])
      const copied = discoverWorld(world).entries
      expect([entries.length, copied.length]).toEqual([1, 1])
      for (const { name, text } of [...entries, ...copied])
        expect(validate(JSON.parse(text)), `${mode} ${name}: ${JSON.stringify(validate.errors)}`).toBe(true)
    }
  })

  it('accept what we accept: documents of every version, right in every part', () => {
    for (const date of official.schemas.keys()) {
      const validate = verdicts(date)
      for (const document of soundDocuments(date)) {
        expect(checkServerDocument(document, { level: 'schema' }), `${date} ${JSON.stringify(document)}`).toMatchObject({ ok: true })
        expect(validate(document), `${date} ${JSON.stringify(document)}: ${JSON.stringify(validate.errors)}`).toBe(true)
      }
    }
  })

  it('refuse nothing that we let through: documents broken in one place each', () => {
    const validate = verdicts('2025-12-11')
    let refused = 0
    for (const [what, document] of brokenDocuments()) {
      if (validate(document)) continue
      refused++
      expect(checkServerDocument(document, { level: 'schema' }).ok, what).toBe(false)
    }
    expect(refused).toBeGreaterThan(30)
  })
})

it.skipIf(problem !== undefined)('our own description has the standard’s paths below each registry', async () => {
  const { json } = await api.get('/openapi.json')
  for (const path of Object.keys(official.openApi.paths)) expect(json.paths).toHaveProperty([`${BASE}${path}`])
})
