import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { TestRecord } from '../../scripts/vitest-reporter.ts'
import { misnumbered, REQUIREMENTS } from './all.ts'
import { citationsOf } from './citations.ts'
import { judgeCoverage } from './coverage.ts'
import { PROOF_OF_FILE, type Proof, proofOf } from './proof.ts'
import type { Requirement } from './requirement.ts'
import { citedInSources } from './source-citations.ts'

const MAX_WORDS = 20
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

it('every document has its exact number of rows, numbered in sequence', () => {
  expect(misnumbered(REQUIREMENTS)).toEqual([])
})

describe.each(REQUIREMENTS.map((document) => [document.document, document] as const))('requirements of document %s', (_id, { rows }) => {
  it('are short and say each thing once', () => {
    expect(rows.filter((row) => row.text.trim().split(/\s+/).length > MAX_WORDS).map((row) => row.id)).toEqual([])
    const texts = rows.map((row) => row.text.toLowerCase())
    expect(texts.filter((text, index) => texts.indexOf(text) !== index)).toEqual([])
  })

  it('name a decision record exactly when declined', () => {
    const adrFolder = new URL('../../docs/adr/', import.meta.url)
    const wrong = rows.filter(
      (row) => (row.state === 'declined') !== (row.adr !== undefined) || (row.adr && !existsSync(new URL(row.adr, adrFolder))),
    )
    expect(wrong.map((row) => row.id)).toEqual([])
  })

  it('are met exactly when a test of the sources cites them, by a proof that fits', () => {
    const cited = citedInSources(ROOT)
    const proven = new Map([...cited].filter(([id]) => rows.some((row) => row.id === id)))
    expect(judgeCoverage(rows, { proven, problems: [] }, cited)).toEqual([])
  })
})

describe('proofOf', () => {
  it.each<[string, Proof]>([
    ['test/e2e/operator-stories.node.test.ts', 'e2e'],
    ['test/platform/stories.platform.test.ts', 'e2e'],
    ['apps/operator/src/x.cluster.test.ts', 'cluster'],
    ['test/registry/killed.services.test.ts', 'process'],
    ['apps/operator/src/requirements.test.ts', 'unit'],
    ['test/requirements/resource-admission.cluster.test.ts', 'admission'],
    ['test/requirements/resource-schemas.test.ts', 'schema'],
    ['test/docs.test.ts', 'docs'],
  ])('%s: %s', (file, proof) => expect(proofOf(file)).toBe(proof))

  it('names files that exist', () => {
    expect(Object.keys(PROOF_OF_FILE).filter((file) => !existsSync(`${ROOT}${file}`))).toEqual([])
  })
})

describe('judgeCoverage', () => {
  const row = (id: string, state: Requirement['state'], more: Partial<Requirement> = {}): Requirement => ({
    id: id as Requirement['id'],
    section: 's',
    line: 1,
    kind: 'feature',
    text: 't',
    state,
    ...more,
  })
  const test = (title: string, more: Partial<TestRecord> = {}): TestRecord => ({
    file: 'packages/x/src/x.test.ts',
    suites: [],
    title,
    state: 'passed',
    expectedToFail: false,
    secondTry: false,
    reason: '',
    ...more,
  })
  const judge = (rows: Requirement[], tests: TestRecord[]) => {
    const citations = citationsOf(tests)
    return judgeCoverage(rows, citations, citations.proven)
  }

  it('passes when each met row is cited by a passed test', () => {
    expect(judge([row('009-001', 'met'), row('009-002', 'planned')], [test('does it [009-001]')])).toEqual([])
  })

  it('finds a met row without a passed test, and a citation of an unknown row', () => {
    expect(judge([row('009-001', 'met')], [test('does it [009-001]', { state: 'skipped' }), test('other [009-009]')])).toEqual([
      '009-001 claims to be met, but no passed test cites [009-001]',
      'a test cites [009-009], which is no requirement',
    ])
  })

  it.each(['planned', 'declined'] as const)('finds a row that says %s though a test proves it', (state) => {
    expect(judge([row('009-001', state)], [test('does it [009-001]')])).toEqual([
      `009-001 is cited by a passed test but still says ${state}`,
    ])
  })

  it('does not take schema and admission as proof of behavior', () => {
    const tests = [
      test('has a field [009-001] [009-002]', { file: 'test/requirements/resource-schemas.test.ts' }),
      test('is accepted [009-001] [009-002]', { file: 'test/requirements/resource-admission.cluster.test.ts' }),
    ]
    expect(judge([row('009-001', 'met', { about: 'shape' }), row('009-002', 'met')], tests)).toEqual([
      '009-002 is about behavior, which admission, schema alone does not prove',
    ])
  })

  it('does not take a page as proof of behavior or shape', () => {
    const tests = [test('is described [009-001] [009-002]', { file: 'test/docs.test.ts' })]
    expect(judge([row('009-001', 'met', { kind: 'docs' }), row('009-002', 'met', { about: 'shape' })], tests)).toEqual([
      '009-002 is about shape, which docs alone does not prove',
    ])
  })

  it('finds a proof that the features page does not show', () => {
    const citations = citationsOf([test('does it [009-001]')])
    const shown = new Map([['009-001', new Set<Proof>(['unit', 'cluster'])]])
    expect(judgeCoverage([row('009-001', 'met')], citations, shown)).toEqual([
      '009-001 was proven by unit, docs/features.md shows cluster, unit: cite it in titles only',
    ])
  })
})
