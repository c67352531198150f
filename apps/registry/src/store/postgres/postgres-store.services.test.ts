import { describePostgres, testPostgres } from '@thv/testkit/postgres/describe-postgres'
import type { TestDatabase } from '@thv/testkit/postgres/test-database'
import { beforeAll } from 'vitest'
import { describeStoreContract, type OpenStore } from '../testing/contract/store-contract.ts'
import { openPostgresStore } from './postgres-store.ts'
import { configOf, quiet } from './testing/test-config.ts'

describePostgres('PostgreSQL', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await testPostgres().createDatabase()
  })
  const open = () => openPostgresStore(configOf(database), { log: quiet })

  const openEmpty: OpenStore = async () => {
    let store = await open()
    await database.sql("TRUNCATE source, registry, entry, stamp; UPDATE revision SET data = 0, structure = 0, stamped_at = '-infinity'")
    return {
      store,
      reopen: async () => {
        await store[Symbol.asyncDispose]()
        store = await open()
        return store
      },
      second: open,
    }
  }

  describeStoreContract('PostgreSQL', openEmpty, { reopens: true, shared: true })
})
