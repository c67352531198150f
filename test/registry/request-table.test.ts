import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { errorsOf } from '../../apps/registry/src/api/http/openapi.ts'
import { routes } from '../../apps/registry/src/api/routes.ts'
import { type ApiServer, startApi } from '../../apps/registry/src/api/testing/api-server.ts'
import { createSampleEngine, type SampleEngine } from '../../apps/registry/src/api/testing/sample-engine.ts'
import { type PlayedRow, playTable } from './play-table.ts'
import { requestTable } from './request-table.ts'

let engine: SampleEngine
let api: ApiServer
let played: PlayedRow[]
let document: object
beforeAll(async () => {
  engine = await createSampleEngine()
  api = await startApi({ engine })
  document = (await api.get('/openapi.json')).json
  played = await playTable(api, requestTable())
})
afterAll(async () => {
  await api[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const named = ({ row, status }: PlayedRow) => `${row.method} ${row.target} ${row.body ?? ''} → ${status}`

describe('the request table', () => {
  it('is long, and touches every operation', () => {
    expect(played.length).toBeGreaterThan(300)
    expect(new Set(played.map(({ row }) => row.operationId))).toEqual(new Set(routes.map(({ operationId }) => operationId)))
  })

  it('gets an answer that the API describes, in status and form, to every row', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    addFormats.default(ajv)
    ajv.addSchema({ ...document, $id: 'api' })
    for (const one of played) {
      const route = routes.find(({ operationId }) => operationId === one.row.operationId)
      if (route === undefined) throw new Error(`no route ${one.row.operationId}`)
      const answer = route.answers.find(({ status }) => status === one.status)
      const listed: number[] = [...route.answers.map(({ status }) => status), ...errorsOf(route)]
      expect(listed, named(one)).toContain(one.status)
      if (one.status === 204) continue
      expect(one.type, named(one)).toBe(answer?.type ?? 'application/json')
      if (one.type !== 'application/json') continue
      const place = `api#/paths/${route.path.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')}/${route.method.toLowerCase()}/responses/${one.status}`
      const schema = answer ? `${place}/content/application~1json/schema` : 'api#/components/schemas/Error'
      expect(ajv.validate({ $ref: schema }, one.json), `${named(one)}: ${ajv.errorsText()}`).toBe(true)
    }
  })

  it('refuses every row that is wrong, and blames the client', () => {
    for (const one of played.filter(({ row }) => row.kind === 'bad')) {
      expect(one.status, named(one)).toBeGreaterThanOrEqual(400)
      expect(one.status, named(one)).toBeLessThan(502)
      expect([500, 503], named(one)).not.toContain(one.status)
    }
  })

  it('takes the others, or says that there is nothing', () => {
    const refused = played.filter(({ row, status }) => row.kind === 'good' && status >= 400)
    const unexpected = refused.filter(({ status }) => ![401, 403, 404, 409, 501].includes(status))
    // `latest` and other versions than the document's cannot be written; what is set already cannot be set again.
    const explained = (one: PlayedRow) =>
      one.status === 400 && /no changes|specific one|in the path|false together|never fetched|reserved/.test(one.text)
    expect(unexpected.filter((one) => !explained(one)).map(named)).toEqual([])
  })
})
