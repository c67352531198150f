import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { citationsOf } from '../../test/requirements/citations.ts'
import { judgeCoverage } from '../../test/requirements/coverage.ts'
import type { Requirement } from '../../test/requirements/requirement.ts'
import config from '../../vitest.config.ts'
import { ROOT, run } from '../run.ts'
import type { VitestRecord } from '../vitest-reporter.ts'
import { type StageResult, stageResult } from './stage-result.ts'
import { type GateRun, type Verdict, verdictOf } from './verdict.ts'

/* The gate itself: vitest with our reporter runs a small project of bad tests, each must turn the verdict red and be named at its end. */

const FILES = {
  good: `it('adds [009-001]', () => { expect(1 + 1).toBe(2) })`,
  'no-assertion': `it('looks at nothing [009-001]', () => {})`,
  'no-assertion-async': `it('waits for nothing', async () => { await new Promise((done) => setTimeout(done, 1)) })`,
  'id-in-describe': `describe('sums [009-001]', () => { it('adds', () => { expect(1 + 1).toBe(2) }) })`,
  'expected-to-fail': `it.fails('is known to be broken [009-001]', () => { expect(1 + 1).toBe(3) })`,
  skipped: `it.skip('needs a tool', () => { expect(1).toBe(1) }); it('adds [009-001]', () => { expect(1 + 1).toBe(2) })`,
  'hook-in-file': `beforeAll(() => { throw new Error('no database') }); it('reads [009-001]', () => { expect(1).toBe(1) })`,
  'hook-in-describe': `describe('store', () => { beforeAll(() => { throw new Error('no disk') }); it('reads', () => { expect(1).toBe(1) }) })`,
  'after-all': `describe('store', () => { afterAll(() => { throw new Error('left behind') }); it('reads', () => { expect(1).toBe(1) }) })`,
  'does-not-load': `throw new Error('not a test'); it('adds', () => { expect(1).toBe(1) })`,
  fails: `it('multiplies', () => { expect(2 * 2).toBe(5) })`,
  'second-try': `let tries = 0; it('settles', { retry: 1 }, () => { expect(++tries).toBe(2) })`,
  only: `it.only('adds', () => { expect(1).toBe(1) }); it('is forgotten', () => { expect(1).toBe(2) })`,
} as const
type File = keyof typeof FILES

let folder: string
let record: VitestRecord

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'thv-gate-'))
  mkdirSync(join(folder, 'src'))
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, 'src', `${name}.test.ts`), text)
  const settings = { globals: true, include: ['src/*.test.ts'], allowOnly: true, expect: { requireAssertions: true }, watch: false }
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify({ test: settings })}`)
  const path = join(folder, 'record.json')
  const args = ['run', '--root', folder, `--reporter=${ROOT}scripts/vitest-reporter.ts`]
  const { output } = await run('vitest', args, { env: { THV_VITEST_RECORD: path }, quiet: true, limitMs: 280_000 })
  try {
    record = JSON.parse(readFileSync(path, 'utf8')) as VitestRecord
  } catch (error) {
    throw new Error(`no record: ${output}`, { cause: error })
  }
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Judges one file as if it were the unit stage of a run whose only requirement row is 009-001. */
function judge(file: File, more: Partial<GateRun> = {}): Verdict {
  const isOf = (each: { file: string }) => each.file.startsWith(`src/${file}.test.ts`)
  const own = { tests: record.tests.filter(isOf), errors: record.errors.filter(isOf) }
  const row: Requirement = { id: '009-001' as Requirement['id'], section: 's', line: 1, kind: 'feature', text: 't', state: 'met' }
  const citations = citationsOf(own.tests)
  const coverage = own.tests.some(({ title, suites }) => [title, ...suites].some((text) => text.includes('[009-001]')))
    ? judgeCoverage([row], citations, citations.proven)
    : []
  return verdictOf(runOf(stageResult('unit', own, own.errors.length > 0 ? 1 : 0), { coverage, ...more }))
}

function runOf(result: StageResult, more: Partial<GateRun> = {}): GateRun {
  return { ci: false, stages: [{ name: 'unit', seconds: 1, result }], built: false, coverage: [], secondTriesBefore: [], ...more }
}

describe('a run of the small project', () => {
  it('is green with a good test', () => {
    expect(judge('good', { ci: true })).toMatchObject({ green: true, lines: expect.arrayContaining(['1 passed, 0 failed']) })
  })

  it.each<[File, Partial<GateRun>, string[]]>([
    ['no-assertion', {}, ['looks at nothing [009-001]: expected any number of assertion', '[009-001]']],
    ['no-assertion-async', {}, ['no-assertion-async.test.ts > waits for nothing: expected any number of assertion']],
    ['id-in-describe', {}, ['[009-001] stands in a describe of src/id-in-describe.test.ts']],
    ['expected-to-fail', {}, ['is known to be broken [009-001]: it.fails proves nothing', '009-001 claims to be met']],
    ['skipped', { ci: true }, ['skipped, which CI does not allow: unit: src/skipped.test.ts > needs a tool']],
    ['hook-in-file', {}, ['src/hook-in-file.test.ts', 'no database']],
    ['hook-in-describe', {}, ['src/hook-in-describe.test.ts > store: no disk']],
    ['after-all', {}, ['src/after-all.test.ts > store: left behind']],
    ['does-not-load', {}, ['src/does-not-load.test.ts: not a test']],
    ['fails', {}, ['src/fails.test.ts > multiplies: expected 4 to be 5']],
    [
      'second-try',
      { secondTriesBefore: ['unit: src/second-try.test.ts > settles'] },
      ['two runs in a row, which is a defect: unit: src/second-try'],
    ],
    ['only', { ci: true }, ['src/only.test.ts > is forgotten']],
  ])('is red because of %s, and its last lines say so', (file, more, expected) => {
    const { green, lines } = judge(file, more)
    const failures = lines.filter((line) => line.startsWith('✗ ')).join('\n')
    expect(green).toBe(false)
    for (const text of expected) expect(failures).toContain(text)
    expect(lines.at(-1)).toMatch(/^\d+ passed, [1-9]\d* failed/)
  })

  it('is green with a skipped test outside of CI, and counts it', () => {
    expect(judge('skipped')).toMatchObject({ green: true, lines: expect.arrayContaining(['1 passed, 0 failed, 1 skipped']) })
  })

  it('names a test that passed at the second try', () => {
    const { green, lines } = judge('second-try')
    expect(green).toBe(true)
    expect(lines.join('\n')).toContain('~ only at the second try: unit: src/second-try.test.ts > settles: expected 1 to be 2')
  })
})

describe('npm test', () => {
  it.each(['0', '', 'x'])('ends at once with SOAK=%j and names it', async (SOAK) => {
    const { code, output } = await run(process.execPath, ['scripts/test.ts'], { env: { SOAK }, quiet: true, limitMs: 240_000 })
    expect(code).not.toBe(0)
    expect(output).toContain(`SOAK=${SOAK}: set it to a whole number from 1 on`)
    expect(output).not.toContain('── verify ──')
  })

  it('requires assertions in every project', () => {
    const { projects = [] } = (config as { test: { projects: { test: { name: string; expect?: { requireAssertions?: boolean } } }[] } })
      .test
    expect(projects.length).toBeGreaterThan(7)
    expect(projects.filter(({ test }) => test.expect?.requireAssertions !== true).map(({ test }) => test.name)).toEqual([])
  })
})
