import { readFileSync } from 'node:fs'
import { request } from '@thv/testkit/cluster/http-request'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from '../api-server.ts'
import { rowSets } from './all-rows.ts'
import { widgetDefinition } from './custom-rows.ts'
import { type ParityAnswer, type ParityTarget, runRow } from './testing/run-row.ts'

const SERVICE_RANGE = '127.96.0.0/17'

describe('parity with the recorded answers of a real API server', () => {
  const namespace = 'parity-run'
  const errors: unknown[] = []
  let server: EmbeddedApiServer
  let target: ParityTarget

  beforeAll(async () => {
    server = await startApiServer({ onError: (error) => errors.push(error) })
    target = { url: server.url, caPem: server.caPem, adminToken: server.adminToken, namespace, serviceRange: SERVICE_RANGE }
    const create = (path: string, body: unknown) =>
      request(`${server.url}${path}`, {
        method: 'POST',
        body,
        caPem: server.caPem,
        headers: { authorization: `Bearer ${server.adminToken}` },
      })
    await create('/api/v1/namespaces', { metadata: { name: namespace } })
    await create(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } })
    await create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition)
  })
  afterAll(async () => {
    await server.close()
    expect(errors).toEqual([])
  })

  describe.each(Object.keys(rowSets))('%s', (set) => {
    const rows = rowSets[set] ?? []
    /** Answers of the real server, checked against it by parity.cluster.test.ts. */
    const goldens = goldensOf(set)

    it('has a recorded answer for every row, under a name of its own', () => {
      expect(Object.keys(goldens)).toEqual(rows.map(({ name }) => name))
    })

    it.each([...rows])('$name', async (row) => {
      expect(await runRow(target, row)).toEqual(goldens[row.name])
    })
  })
})

function goldensOf(set: string): Record<string, ParityAnswer[]> {
  return JSON.parse(readFileSync(new URL(`../../../recordings/apiserver/parity/${set}.golden.json`, import.meta.url), 'utf8')) as Record<
    string,
    ParityAnswer[]
  >
}
