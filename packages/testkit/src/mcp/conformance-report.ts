/** One check of a scenario as the suite writes it to `checks.json`. */
export interface ConformanceCheck {
  readonly id: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  readonly errorMessage?: string
}

export interface ScenarioOutcome {
  readonly scenario: string
  readonly passed: boolean
  /** Counts towards the revision; always true when no requirement set was run. */
  readonly scored: boolean
  readonly checks: readonly ConformanceCheck[]
}

export interface Tally {
  readonly passed: number
  readonly total: number
}

export interface ConformanceReport {
  readonly scored: Tally
  readonly all: Tally
  readonly checks: { readonly passed: number; readonly failed: number; readonly warnings: number }
  /** `scenario: check: reason`, one entry per failed check, scored or not. */
  readonly failures: readonly string[]
  readonly warnings: readonly string[]
  readonly scenarios: readonly ScenarioOutcome[]
  readonly exitCode: number
  /** The output of the suite, for a failing test to show. */
  readonly output: string
}

export interface ReportInput {
  readonly output: string
  readonly exitCode: number
  /** The checks of each scenario that left a file. */
  readonly files: ReadonlyMap<string, readonly ConformanceCheck[]>
}

const SUMMARY_LINE = /^([✓✗]) (\S+): (\d+) passed, (\d+) failed$/
const UNSCORED_LINE = /^ {2}[✓✗] (\S+) \([^)]+\)$/

/** Joins the printed summary with the files. Throws if there is no scenario at all: a run that judged nothing must not look good. */
export function readReport({ output, exitCode, files }: ReportInput): ConformanceReport {
  const lines = output.split('\n')
  const unscored = new Set(lines.flatMap((line) => UNSCORED_LINE.exec(line)?.[1] ?? []))
  const summary = new Map(lines.flatMap((line) => summaryOf(line)))
  const names = summary.size > 0 ? [...summary.keys()] : [...files.keys()]
  if (names.length === 0) throw new Error(`The conformance suite judged nothing (exit code ${exitCode}):\n${output.slice(-2_000)}`)
  const scenarios = names.map((scenario): ScenarioOutcome => {
    const checks = files.get(scenario) ?? []
    const passed = summary.get(scenario) ?? !checks.some(({ status }) => status === 'FAILURE')
    return { scenario, passed, scored: !unscored.has(scenario), checks }
  })
  const checks = scenarios.flatMap((outcome) => outcome.checks)
  return {
    scored: tally(scenarios.filter(({ scored }) => scored)),
    all: tally(scenarios),
    checks: { passed: count(checks, 'SUCCESS'), failed: count(checks, 'FAILURE'), warnings: count(checks, 'WARNING') },
    failures: scenarios.flatMap(failuresOf),
    warnings: scenarios.flatMap((outcome) => describe(outcome, 'WARNING')),
    scenarios,
    exitCode,
    output,
  }
}

function summaryOf(line: string): [string, boolean][] {
  const [, mark, scenario] = SUMMARY_LINE.exec(line) ?? []
  return scenario === undefined ? [] : [[scenario, mark === '✓']]
}

/** A scenario that broke off has no file, but it failed. */
function failuresOf(outcome: ScenarioOutcome): string[] {
  const described = describe(outcome, 'FAILURE')
  return outcome.passed || described.length > 0 ? described : [`${outcome.scenario}: did not run to its end`]
}

function describe({ scenario, checks }: ScenarioOutcome, status: ConformanceCheck['status']): string[] {
  return checks
    .filter((check) => check.status === status)
    .map(({ id, errorMessage }) => `${scenario}: ${id}: ${errorMessage ?? 'no reason given'}`)
}

function tally(scenarios: readonly ScenarioOutcome[]): Tally {
  return { passed: scenarios.filter(({ passed }) => passed).length, total: scenarios.length }
}

function count(checks: readonly ConformanceCheck[], status: ConformanceCheck['status']): number {
  return checks.filter((check) => check.status === status).length
}
