import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { expectedOf, type Judged, type JudgeRow, judgedByGo, ours } from './testing/judge.ts'
import { COMPOUND_IN_TEXT, randomRows } from './testing/random-rows.ts'
import { DATA, DIFFERENCES, ROWS } from './testing/template-rows.ts'

const FILE = new URL('../../recordings/go-templates.generated.json', import.meta.url)
const RECORDED_SEED = 1

/** Compares the recording with Go's text/template; RECORD=1 writes it instead. */
describe('recording of text/template', () => {
  const table = (templates: readonly string[]): Record<string, Judged> => {
    const judged = judgedByGo(templates.map((template) => ({ template, data: DATA })))
    return Object.fromEntries(templates.map((template, index) => [template, judged[index] as Judged]))
  }

  it('matches Go', () => {
    const recording = {
      rows: table([...new Set(Object.values(ROWS).flat())]),
      differences: table(DIFFERENCES.map(({ template }) => template)),
      random: judgedRandomly(1_500, RECORDED_SEED),
    }
    if (process.env['RECORD'] !== undefined) writeFileSync(FILE, `${JSON.stringify(recording, null, 1)}\n`)
    expect(JSON.parse(readFileSync(FILE, 'utf8'))).toEqual(recording)
  })

  it('our engine agrees with Go on new random templates', () => {
    const seed = Date.now() % 2 ** 31
    for (const { ok, text, ...row } of judgedRandomly(20_000, seed)) {
      expect(ours(row), `seed ${seed}: ${JSON.stringify(row)}`).toMatchObject(expectedOf({ ok, text }))
    }
  })

  function judgedRandomly(count: number, seed: number): (JudgeRow & Judged)[] {
    const rows = randomRows(count, seed)
    return judgedByGo(rows)
      .map((judged, index) => ({ ...(rows[index] as JudgeRow), ...judged }))
      .filter(({ text }) => !COMPOUND_IN_TEXT.test(text))
  }
})
