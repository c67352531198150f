import { checkArchitecture } from './architecture.ts'
import { staleGeneratedFiles } from './generate.ts'
import { ROOT, run } from './run.ts'
import { checkWords } from './words.ts'

/*
 * npm run verify: everything that can be said about the sources without running the tests. Each step counts as one test in CI.
 */

export interface StepResult {
  name: string
  ok: boolean
  seconds: number
}

interface Step {
  name: string
  /** Returns what is wrong, or nothing. */
  check: () => Promise<string | undefined>
}

const STEPS: readonly Step[] = [
  { name: 'format and lint', check: () => command('biome', ['ci', '--colors=off', '.']) },
  { name: 'types', check: () => command('tsc', ['-p', 'tsconfig.json']) },
  { name: 'architecture', check: architecture },
  { name: 'generated files', check: generated },
  { name: 'words', check: words },
  { name: 'lock file', check: () => command('npm', ['ci', '--dry-run', '--loglevel=error']) },
]

export async function verify(): Promise<StepResult[]> {
  const results: StepResult[] = []
  for (const step of STEPS) {
    const started = performance.now()
    const problem = await step.check()
    const seconds = (performance.now() - started) / 1000
    results.push({ name: step.name, ok: problem === undefined, seconds })
    console.log(`${problem === undefined ? '✓' : '✗'} ${step.name} (${seconds.toFixed(1)} s)`)
    if (problem !== undefined) console.error(problem.trimEnd())
  }
  return results
}

async function command(name: string, args: readonly string[]): Promise<string | undefined> {
  const { code, output } = await run(name, args, { quiet: true, limitMs: 300_000 })
  return code === 0 ? undefined : output || `${name} ended with code ${code}`
}

async function architecture(): Promise<string | undefined> {
  const { filesRead, offences } = checkArchitecture(ROOT)
  // A checker that reads nothing finds nothing.
  if (filesRead < 20) return `read only ${filesRead} files: the checker no longer finds the sources`
  return offences.length === 0 ? undefined : offences.join('\n')
}

async function generated(): Promise<string | undefined> {
  const stale = await staleGeneratedFiles()
  return stale.length === 0 ? undefined : `stale, run "npm run generate":\n${stale.join('\n')}`
}

async function words(): Promise<string | undefined> {
  const problems = checkWords(ROOT)
  return problems.length === 0 ? undefined : problems.join('\n')
}

if (import.meta.main) {
  const results = await verify()
  process.exitCode = results.every((result) => result.ok) ? 0 : 1
}
