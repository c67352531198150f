import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isCi, soakRounds } from '@thv/testkit/run/run-environment'
import { STAGES_WITH_SECOND_TRY, type Stage } from '../test/budget.ts'
import { misnumbered, REQUIREMENTS } from '../test/requirements/all.ts'
import { citationsOf } from '../test/requirements/citations.ts'
import { judgeCoverage } from '../test/requirements/coverage.ts'
import { citedInSources } from '../test/requirements/source-citations.ts'
import { readSecondTries, secondTriesFile, writeSecondTries } from './gate/second-tries.ts'
import { emptyResult, type StageResult, stageResult } from './gate/stage-result.ts'
import { type GateRun, verdictOf } from './gate/verdict.ts'
import { ROOT, run } from './run.ts'
import { verify } from './verify.ts'
import type { VitestRecord } from './vitest-reporter.ts'

/*
 * npm test: everything, in stages. The Kubernetes programs are built, and the packages of a node installed, in the background from
 * second 0. In CI nothing may be skipped; elsewhere a missing tool skips its part and prints a line that says so.
 */

const CI = isCi()
/** CI runs the fault loops three times as long. A SOAK that is no positive number ends the run here. */
const SOAK = process.env['SOAK'] === undefined && CI ? 3 : soakRounds()
/** For a stage that hangs: on two cores shared with four busy loops the longest may take an hour. */
const STAGE_LIMIT_MS = 90 * 60_000
const stages: { name: Stage; seconds: number; result: StageResult }[] = []

const binaries = buildBinariesInBackground()
/** The longest. */
const gateway = binaries.then(() => build('packages/testkit/src/traefik/build-traefik.ts'))
const collector = gateway.then(() => build('packages/testkit/src/collector/build-collector.ts'))
await stage('verify', verifySteps)
await stage('unit', () => vitest('unit'))
await stage('conformance', () => vitest('conformance'))
await stage('services', () => vitest('services'))
await stage('binaries', () => binaries.then(() => emptyResult()))
await stage('cluster', () => vitest('cluster'))
await stage('embedded', () => vitest('embedded'))
await stage('platform', () => collector.then(() => vitest('platform')))
await stage('fresh clone', () => vitest('clone'))
await stage('node', () => vitest('node'))
const secondTries = secondTriesFile()
const { green, lines } = verdictOf({
  ci: CI,
  stages,
  built: [await binaries, await gateway, await collector].includes(true),
  coverage: coverage(),
  secondTriesBefore: readSecondTries(secondTries),
} satisfies GateRun)
writeSecondTries(
  secondTries,
  stages.flatMap(({ result }) => result.secondTries.map(({ name }) => name)),
)
console.log(`\n${lines.join('\n')}`)
process.exitCode = green ? 0 : 1

async function stage(name: Stage, work: () => Promise<StageResult>): Promise<void> {
  console.log(`\n── ${name} ──`)
  const started = performance.now()
  const result = await work()
  stages.push({ name, seconds: (performance.now() - started) / 1000, result })
}

async function verifySteps(): Promise<StageResult> {
  const steps = await verify()
  const failures = steps.filter((step) => !step.ok).map((step) => `verify: ${step.name}`)
  return { ...emptyResult(failures), passed: steps.length - failures.length }
}

async function vitest(project: string): Promise<StageResult> {
  const name = project === 'clone' ? 'fresh clone' : (project as Stage)
  const folder = mkdtempSync(join(tmpdir(), 'thv-record-'))
  const path = join(folder, 'record.json')
  const retry = STAGES_WITH_SECOND_TRY.has(name) ? '1' : '0'
  const args = ['run', '--project', project, '--retry', retry, '--reporter=default', '--reporter=./scripts/vitest-reporter.ts']
  const env = { THV_VITEST_RECORD: path, FORCE_COLOR: '0', SOAK: String(SOAK) }
  const { code } = await run('vitest', args, { env, limitMs: STAGE_LIMIT_MS })
  try {
    return stageResult(name, JSON.parse(readFileSync(path, 'utf8')) as VitestRecord, code)
  } catch (error) {
    return emptyResult([`${name}: vitest ended with code ${code} and left no record: ${(error as Error).message}`])
  } finally {
    rmSync(folder, { recursive: true })
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

/** Skipped parts prove nothing, so the rows are compared with the tests only where nothing was skipped. */
function coverage(): string[] {
  const rows = REQUIREMENTS.flatMap((document) => document.rows)
  console.log(
    `\n── requirements ──\n${REQUIREMENTS.map(({ document, rows }) => `${document}: ${rows.length}`).join(', ')}; all: ${rows.length}`,
  )
  if (stages.some(({ result }) => result.skipped.length > 0)) {
    console.log('not compared with the tests, because some were skipped')
    return misnumbered(REQUIREMENTS)
  }
  return [
    ...misnumbered(REQUIREMENTS),
    ...judgeCoverage(rows, citationsOf(stages.flatMap(({ result }) => result.tests)), citedInSources(ROOT)),
  ]
}
