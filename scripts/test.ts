import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUDGET_SECONDS, BUILD_SECONDS, MAX_UNSTEADY, type Stage } from '../test/budget.ts'
import { REQUIREMENTS } from '../test/requirements/all.ts'
import { judgeCoverage } from '../test/requirements/coverage.ts'
import { ROOT, run } from './run.ts'
import { verify } from './verify.ts'
import type { VitestCounts } from './vitest-reporter.ts'

/*
 * npm test: everything, in stages. The Kubernetes binaries are built, and the packages of a node installed, in the background from
 * second 0. In CI nothing may be skipped; elsewhere a missing tool skips its part with a loud line.
 */

const CI = process.env['CI'] === 'true'
const totals = { passed: 0, failed: 0, skipped: 0 }
const passedTitles: string[] = []
const failures: string[] = []
const unsteady: string[] = []
const seconds = new Map<Stage, number>()

const binaries = buildBinariesInBackground()
await stage('verify', async () => {
  for (const step of await verify()) count(step.ok)
})
await stage('unit', () => vitest('unit'))
await stage('conformance', () => vitest('conformance'))
await stage('services', () => vitest('services'))
const built = await stage('binaries', () => binaries)
await stage('cluster', () => vitest('cluster'))
await stage('embedded', () => vitest('embedded'))
await stage('platform', () => vitest('platform'))
await stage('fresh clone', () => vitest('clone'))
await stage('node', () => vitest('node'))
checkRequirements()
checkBudget()
checkSteadiness()
if (CI && totals.skipped > 0) {
  console.error(`✗ ${totals.skipped} skipped: in CI nothing may be skipped, so each counts as failed`)
  totals.failed += totals.skipped
}
// Once more at the end: who looks at the last lines only sees which they were.
for (const failure of failures) console.log(`✗ ${failure}`)
const skipped = !CI && totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
console.log(`${totals.passed} passed, ${totals.failed} failed${skipped}`)
process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0

async function stage<T>(name: Stage, work: () => Promise<T>): Promise<T> {
  console.log(`\n── ${name} ──`)
  const started = performance.now()
  const result = await work()
  seconds.set(name, (performance.now() - started) / 1000)
  return result
}

function count(ok: boolean): void {
  if (ok) totals.passed += 1
  else totals.failed += 1
}

async function vitest(project: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'thv-counts-'))
  const countsFile = join(folder, 'counts.json')
  const reporters = ['--reporter=default', '--reporter=./scripts/vitest-reporter.ts']
  const { code } = await run('vitest', ['run', '--project', project, '--retry', '1', ...reporters], {
    env: { THV_VITEST_COUNTS: countsFile, FORCE_COLOR: '0', SOAK: process.env['SOAK'] ?? (CI ? '3' : '1') },
    limitMs: 40 * 60_000,
  })
  const counts = readCounts(countsFile)
  rmSync(folder, { recursive: true })
  totals.passed += counts.passed
  totals.skipped += counts.skipped
  // A run that says nothing, or ends badly with no failed test, has failed.
  totals.failed += counts.failed === 0 && (code !== 0 || counts.passed + counts.skipped === 0) ? 1 : counts.failed
  passedTitles.push(...counts.passedTitles)
  failures.push(...counts.failures.map((failure) => `${project}: ${failure}`))
  unsteady.push(...counts.unsteady.map((test) => `${project}: ${test}`))
}

function readCounts(path: string): VitestCounts {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as VitestCounts
  } catch (error) {
    console.error(`✗ vitest left no counts: ${(error as Error).message}`)
    return { passed: 0, failed: 1, skipped: 0, passedTitles: [], failures: [], unsteady: [] }
  }
}

/** One after the other, for they would only get in each other's way. Resolves to whether something had to be built. */
async function buildBinariesInBackground(): Promise<boolean> {
  const kubernetes = await build('packages/testkit/src/cluster/node/build-binaries.ts')
  const helm = await build('packages/testkit/src/helm/build-helm.ts')
  return kubernetes || helm
}

/** A failure shows in the stages that need what should have been built. */
function build(script: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        process.stdout.write(chunk)
      })
    child.on('error', (error) => {
      console.error(`✗ cannot start ${script}: ${error.message}`)
      resolve(false)
    })
    child.on('close', () => resolve(/building/i.test(output)))
  })
}

function checkRequirements(): void {
  const rows = REQUIREMENTS.flatMap((document) => document.rows)
  console.log(
    `\n── requirements ──\n${REQUIREMENTS.map((document) => `${document.document}: ${document.rows.length}`).join(', ')}; all: ${rows.length}`,
  )
  // Skipped parts cannot prove anything, so their rows are judged only where nothing was skipped.
  const problems = totals.skipped > 0 ? [] : judgeCoverage(rows, passedTitles)
  for (const problem of problems) console.error(`✗ ${problem}`)
  if (totals.skipped > 0) console.log('not compared with the tests, because some were skipped')
  count(problems.length === 0)
}

/** What passed only at its second try is named, and more than a few of them are a failure (ADR 0013). */
function checkSteadiness(): void {
  for (const test of unsteady) console.log(`~ only at the second try: ${test}`)
  if (unsteady.length > MAX_UNSTEADY) console.error(`✗ ${unsteady.length} tests were unsteady, ${MAX_UNSTEADY} may be`)
  count(unsteady.length <= MAX_UNSTEADY)
}

function checkBudget(): void {
  console.log('\n── seconds (budget) ──')
  for (const [name, spent] of seconds) console.log(`${name.padEnd(12)} ${spent.toFixed(0).padStart(5)} (${BUDGET_SECONDS[name]})`)
  const spent = [...seconds.values()].reduce((sum, each) => sum + each, 0)
  const allowed = Object.values(BUDGET_SECONDS).reduce((sum, each) => sum + each, built ? BUILD_SECONDS : 0)
  console.log(`${'all'.padEnd(12)} ${spent.toFixed(0).padStart(5)} (${allowed})`)
  if (CI) count(spent <= allowed)
}
