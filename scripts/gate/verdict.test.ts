import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BUDGET_SECONDS, BUILD_SECONDS, MAX_SECOND_TRIES, STAGES_WITH_SECOND_TRY } from '../../test/budget.ts'
import { misnumbered, REQUIREMENTS } from '../../test/requirements/all.ts'
import type { TestRecord } from '../vitest-reporter.ts'
import { readSecondTries, secondTriesFile, writeSecondTries } from './second-tries.ts'
import { emptyResult, stageResult } from './stage-result.ts'
import { type GateRun, verdictOf } from './verdict.ts'

const runOf = (more: Partial<GateRun> = {}, seconds = 1): GateRun => ({
  ci: true,
  stages: [{ name: 'cluster', seconds, result: { ...emptyResult(), passed: 10 } }],
  built: false,
  coverage: [],
  secondTriesBefore: [],
  ...more,
})

const tried = (count: number): GateRun['stages'] => {
  const secondTries = Array.from({ length: count }, (_, index) => ({ name: `cluster: test ${index}`, reason: 'late' }))
  return [{ name: 'cluster', seconds: 1, result: { ...emptyResult(), passed: 10, secondTries } }]
}

describe('verdictOf', () => {
  it('is green without failures', () => expect(verdictOf(runOf())).toMatchObject({ green: true }))

  it('is red when a document has lost a row, and says which document', () => {
    const [first, ...others] = REQUIREMENTS
    const short = first && { ...first, rows: first.rows.slice(0, -1) }
    const coverage = misnumbered([...(short ? [short] : []), ...others])
    const { green, lines } = verdictOf(runOf({ coverage }))
    expect(green).toBe(false)
    expect(lines.at(-2)).toMatch(/^✗ requirements: document 000 has \d+ rows instead of \d+/)
  })

  it('is red when a stage ran nothing, or ended badly without a failed test', () => {
    const nothing = stageResult('cluster', { tests: [], errors: [] }, 0)
    expect(verdictOf(runOf({ stages: [{ name: 'cluster', seconds: 1, result: nothing }] }))).toMatchObject({
      green: false,
      lines: expect.arrayContaining(['✗ cluster: vitest ran no test']),
    })
    const tests: TestRecord[] = [
      { file: 'a', suites: [], title: 't', state: 'passed', expectedToFail: false, secondTry: false, reason: '' },
    ]
    expect(stageResult('cluster', { tests, errors: [] }, 1).failures).toEqual(['cluster: vitest ended with code 1 though no test failed'])
  })

  it('allows a few second tries, not more, and none of a test that needed one in the run before', () => {
    expect(verdictOf(runOf({ stages: tried(MAX_SECOND_TRIES) })).green).toBe(true)
    expect(verdictOf(runOf({ stages: tried(MAX_SECOND_TRIES + 1) }))).toMatchObject({
      green: false,
      lines: expect.arrayContaining([`✗ second tries: ${MAX_SECOND_TRIES + 1} tests needed one, ${MAX_SECOND_TRIES} may`]),
    })
    expect(verdictOf(runOf({ stages: tried(1), secondTriesBefore: ['cluster: test 0'] })).lines.at(-2)).toBe(
      '✗ second tries: needed one in two runs in a row, which is a defect: cluster: test 0',
    )
    expect(verdictOf(runOf({ stages: tried(1), secondTriesBefore: ['cluster: another'] })).green).toBe(true)
  })

  it('compares the time with the budget in CI, with the time to build where something was built', () => {
    expect(verdictOf(runOf({}, 3601)).lines.at(-2)).toBe('✗ budget: 1 s more than test/budget.ts allows')
    expect(verdictOf(runOf({ built: true }, 4800)).green).toBe(true)
    expect(verdictOf(runOf({ built: true }, 4801)).green).toBe(false)
    expect(verdictOf(runOf({ ci: false }, 9999)).green).toBe(true)
  })
})

describe('budget', () => {
  it('is an hour with the programs cached and 80 minutes without', () => {
    const sum = Object.values(BUDGET_SECONDS).reduce((total, each) => total + each, 0)
    expect([sum, sum + BUILD_SECONDS]).toEqual([3600, 80 * 60])
  })

  it('gives no second try where nothing but our own programs runs', () => {
    expect(['verify', 'unit', 'conformance', 'services'].filter((stage) => STAGES_WITH_SECOND_TRY.has(stage as 'unit'))).toEqual([])
  })
})

describe('second tries of the run before', () => {
  it('are kept in the cache folder', () => {
    expect(secondTriesFile({ THV_CACHE_DIR: '/c' })).toBe('/c/toolhive-ts/second-tries.json')
    expect(secondTriesFile({ XDG_CACHE_HOME: '/x' })).toBe('/x/toolhive-ts/second-tries.json')
  })

  it('are read back, and a missing or broken file means none', () => {
    const folder = mkdtempSync(join(tmpdir(), 'thv-tries-'))
    try {
      const path = join(folder, 'a', 'second-tries.json')
      expect(readSecondTries(path)).toEqual([])
      writeSecondTries(path, ['cluster: one'])
      expect(readSecondTries(path)).toEqual(['cluster: one'])
      writeFileSync(path, '["cluster: o')
      expect(readSecondTries(path)).toEqual([])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
