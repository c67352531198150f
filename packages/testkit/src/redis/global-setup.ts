import { isCi } from '../cluster/global-setup.ts'
import { ensureRedis, redisProblem } from './redis-programs.ts'

/** Installs Redis before the first test: files that run at the same time would be in the way of each other's apt-get. */
export async function setup(): Promise<void> {
  const problem = redisProblem()
  if (problem !== undefined && !isCi(process.env)) {
    console.error(`\n!!! NO TESTS WITH REDIS: ${problem} !!!\n`)
    return
  }
  await ensureRedis()
}
