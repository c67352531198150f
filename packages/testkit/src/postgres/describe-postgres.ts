import { describe, inject } from 'vitest'
import type {} from './global-setup.ts'
import { createDatabase, createUser, type PostgresAccess, type PostgresUser, type TestDatabase } from './test-database.ts'

/** The one server of this run. Files share it: a test that restarts or freezes a server starts one of its own. */
export interface SharedPostgres {
  readonly access: PostgresAccess
  createDatabase(): Promise<TestDatabase>
  createUser(): Promise<PostgresUser>
}

export function testPostgres(): SharedPostgres {
  const access = inject('thvPostgres')
  if (!access) throw new Error('no PostgreSQL in this run: use describePostgres in a file *.services.test.ts')
  return { access, createDatabase: () => createDatabase(access), createUser: () => createUser(access) }
}

/** `describe`, or skipped where PostgreSQL cannot run (never in CI: there the run fails before). */
export function describePostgres(name: string, fn: () => void): void {
  if (inject('thvPostgres')) describe(name, fn)
  else describe.skip(name, fn)
}
