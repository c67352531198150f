import { BUDGET_SECONDS, BUILD_SECONDS, MAX_SECOND_TRIES, type Stage } from '../../test/budget.ts'
import type { StageResult } from './stage-result.ts'

/** Everything that decides whether a run of `npm test` is green. */
export interface GateRun {
  ci: boolean
  stages: readonly { name: Stage; seconds: number; result: StageResult }[]
  /** Whether the Kubernetes programs had to be built. */
  built: boolean
  /** Problems of the requirement rows. */
  coverage: readonly string[]
  /** Names of the tests that needed a second try in the run before. */
  secondTriesBefore: readonly string[]
}

export interface Verdict {
  green: boolean
  lines: string[]
}

/** The verdict and the lines that end the output: budget, second tries, then one line per failure, and the sum. */
export function verdictOf(run: GateRun): Verdict {
  const results = run.stages.map((stage) => stage.result)
  const skipped = results.flatMap((result) => result.skipped)
  const failures = [
    ...results.flatMap((result) => result.failures),
    ...run.coverage.map((problem) => `requirements: ${problem}`),
    ...secondTryProblems(run),
    ...(run.ci ? [...budgetProblems(run), ...skipped.map((name) => `skipped, which CI does not allow: ${name}`)] : []),
  ]
  const passed = results.reduce((sum, result) => sum + result.passed, 0)
  const green = failures.length === 0 && passed > 0
  return {
    green,
    lines: [
      ...budgetTable(run),
      ...results.flatMap((result) => result.secondTries).map(({ name, reason }) => `~ only at the second try: ${name}: ${reason}`),
      ...failures.map((failure) => `✗ ${failure}`),
      `${passed} passed, ${failures.length} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`,
    ],
  }
}

/** ADR 0013: a few tests of the stages with live controllers may need a second try, none of them in two runs in a row. */
function secondTryProblems({ stages, secondTriesBefore }: GateRun): string[] {
  const names = stages.flatMap(({ result }) => result.secondTries.map(({ name }) => name))
  const again = names.filter((name) => secondTriesBefore.includes(name))
  return [
    ...(names.length > MAX_SECOND_TRIES ? [`second tries: ${names.length} tests needed one, ${MAX_SECOND_TRIES} may`] : []),
    ...again.map((name) => `second tries: needed one in two runs in a row, which is a defect: ${name}`),
  ]
}

function budgetTable(run: GateRun): string[] {
  const line = (name: string, spent: number, allowed: number) => `${name.padEnd(12)} ${spent.toFixed(0).padStart(5)} (${allowed})`
  return [
    '── seconds (budget) ──',
    ...run.stages.map(({ name, seconds }) => line(name, seconds, BUDGET_SECONDS[name])),
    line('all', secondsOf(run), allowedSeconds(run)),
  ]
}

/** Only the sum counts: a stage that is slow on one machine may be fast on another. */
function budgetProblems(run: GateRun): string[] {
  const over = secondsOf(run) - allowedSeconds(run)
  return over > 0 ? [`budget: ${over.toFixed(0)} s more than test/budget.ts allows`] : []
}

const secondsOf = ({ stages }: GateRun) => stages.reduce((sum, stage) => sum + stage.seconds, 0)

const allowedSeconds = ({ built }: GateRun) => Object.values(BUDGET_SECONDS).reduce((sum, each) => sum + each, built ? BUILD_SECONDS : 0)
