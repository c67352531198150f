import { describePostgres, testPostgres } from '@thv/testkit/postgres/describe-postgres'
import { expect, it } from 'vitest'
import { startApi } from '../../apps/registry/src/api/testing/api-server.ts'
import { createSampleEngine } from '../../apps/registry/src/api/testing/sample-engine.ts'
import { openPostgresStore } from '../../apps/registry/src/store/postgres/postgres-store.ts'
import { configOf, quiet } from '../../apps/registry/src/store/postgres/testing/test-config.ts'
import type { RegistryStore } from '../../apps/registry/src/store/registry-store.ts'
import { type PlayedRow, playTable } from './play-table.ts'
import { requestTable } from './request-table.ts'

async function answersWith(store?: RegistryStore): Promise<PlayedRow[]> {
  await using engine = await createSampleEngine(store ? { store } : {})
  await using api = await startApi({ engine })
  return await playTable(api, requestTable())
}

describePostgres('PostgreSQL and the embedded store', () => {
  it('answer every row of the request table alike', async () => {
    const database = await testPostgres().createDatabase()
    const embedded = await answersWith()
    const postgres = await answersWith(await openPostgresStore(configOf(database), { log: quiet }))
    expect(embedded.length).toBeGreaterThan(300)
    for (const [i, answer] of embedded.entries()) {
      const { row, status, headers, text } = answer
      const other = postgres[i]
      expect({ row, status: other?.status, headers: other?.headers, text: other?.text }).toEqual({ row, status, headers, text })
    }
  })
})
