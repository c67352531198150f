import { runConformance } from './conformance/run-conformance.ts'
import { type RunResult, run } from './run.ts'

/*
 * npm run soak [-- ROUNDS | record | conformance [FOCUS]]: the loops of the test suites with the full figures instead of the small ones of CI. The fuzz run looks
 * somewhere new each time; its seed is printed first and last, and FUZZ_SEED=n npm run soak sends the same requests again. `record` runs
 * only the comparison of the recordings with the real controllers; with RECORD=1 it writes them. `conformance` runs only the conformance
 * specs of Kubernetes' API machinery on the local platform, or those whose names match FOCUS.
 */

const FUZZ_REQUESTS = '100000'
const PLATFORM = { SOAK_KILLS: '50', SOAK_WATCHERS: '1000' }
const PLATFORM_FILES = ['test/platform/killed', 'test/platform/watchers', 'test/platform/full-disk']
const FAILOVERS = { SOAK_FAILOVERS: '50' }
const SEEDS = 1_000_000

const rounds = process.argv[2] ?? '20'
const seed = process.env['FUZZ_SEED'] ?? String(Math.floor(Math.random() * SEEDS))
if (!/^([1-9]\d{0,3}|record|conformance)$/.test(rounds) || !/^\d{1,9}$/.test(seed)) {
  console.error(
    `usage: [FUZZ_SEED=SEED] npm run soak [-- ROUNDS | record | conformance [FOCUS]]; whole numbers, not ${JSON.stringify({ rounds, seed })}`,
  )
  process.exit(2)
}

if (rounds === 'record') process.exitCode = await recordings()
else if (rounds === 'conformance') process.exitCode = await conformance(process.argv[3])
else process.exitCode = await everything()

async function conformance(focus?: string): Promise<number> {
  const { code, summary } = await runConformance(focus)
  console.log(`soak: ${summary}`)
  return code
}

async function recordings(): Promise<number> {
  const result = await suite('record', [], {})
  report('recordings of the real controllers', result)
  return result.code
}

async function everything(): Promise<number> {
  console.log(`soak: FUZZ_SEED=${seed}`)
  const faults = await suite('cluster', ['resilience'], { SOAK: rounds })
  const recorded = await recordings()
  const fuzz = await suite('conformance', ['test/load'], { FUZZ_REQUESTS, FUZZ_SEED: seed })
  const platform = await suite('platform', PLATFORM_FILES, PLATFORM)
  const store = await suite('unit', ['apps/registry/src/store'], { SOAK: rounds })
  const registry = await suite('services', ['test/registry/killed', 'apps/registry/src/store'], { SOAK: rounds })
  const failovers = await suite('services', ['packages/authserver/src/redis-failover'], FAILOVERS)
  report(`${rounds} rounds of faults`, faults)
  report(`${FUZZ_REQUESTS} broken requests with FUZZ_SEED=${seed}`, fuzz)
  report(`local platform: ${PLATFORM.SOAK_KILLS} kills, ${PLATFORM.SOAK_WATCHERS} watchers, a full disk`, platform)
  report(`embedded store of the registry, ${rounds} times as long`, store)
  report(`registry server killed, and its PostgreSQL store, ${rounds} times as long`, registry)
  report(`${FAILOVERS.SOAK_FAILOVERS} failovers of Redis under an authorization server`, failovers)
  return faults.code || failovers.code || recorded || fuzz.code || platform.code || store.code || registry.code
}

function suite(project: string, files: readonly string[], env: Record<string, string>): Promise<RunResult> {
  return run('vitest', ['run', '--project', project, ...files], { env: { ...env, FORCE_COLOR: '0' } })
}

function report(what: string, { code, seconds }: RunResult): void {
  console.log(`soak: ${what} in ${seconds.toFixed(0)} s: ${code === 0 ? 'passed' : 'failed'}`)
}
