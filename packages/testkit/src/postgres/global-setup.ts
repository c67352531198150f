import type { TestProject } from 'vitest/node'
import { isCi } from '../cluster/global-setup.ts'
import { startPostgres } from './postgres.ts'
import { postgresProblem } from './postgres-programs.ts'
import type { PostgresAccess } from './test-database.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Absent when this machine has no PostgreSQL and cannot install it. */
    thvPostgres: PostgresAccess
  }
}

/** One PostgreSQL for all files of a run. In CI nothing is skipped: there the start itself fails with the reason. */
export async function setup(project: Pick<TestProject, 'provide'>): Promise<(() => Promise<void>) | undefined> {
  const problem = postgresProblem()
  if (problem !== undefined && !isCi(process.env)) {
    console.error(`\n!!! NO TESTS WITH POSTGRESQL: ${problem} !!!\n`)
    return undefined
  }
  const begin = performance.now()
  const server = await startPostgres()
  console.error(`PostgreSQL ready after ${((performance.now() - begin) / 1000).toFixed(1)} s`)
  project.provide('thvPostgres', server.access)
  return () => server.stop()
}
