import { describe, expect, it } from 'vitest'
import { BODY_MUTATIONS } from './body-mutations.ts'
import { fuzzCase } from './fuzz-case.ts'
import { SEEDS } from './fuzz-corpus.ts'
import { HEAD_MUTATIONS } from './head-mutations.ts'

const CONTEXT = { host: '127.0.0.1:1', sessionId: 's', goodSessionId: 'g' }
const caseOf = (run: number, number: number) => fuzzCase({ run, number, seeds: SEEDS }, CONTEXT)

describe('fuzzCase', () => {
  it('gives the same bytes for the same numbers, and others for others', () => {
    const bytesOf = (run: number, number: number) => Buffer.concat(caseOf(run, number).transmission.pieces).toString('latin1')
    expect(bytesOf(3, 50)).toBe(bytesOf(3, 50))
    expect(new Set([0, 1, 2, 3, 4, 5, 6, 7].map((run) => bytesOf(run, 50))).size).toBeGreaterThan(4)
  })

  it('uses every seed and every mutation, and leaves some requests as they are', () => {
    const cases = Array.from({ length: 3_000 }, (_, number) => caseOf(1, number))
    const changes = new Set(cases.flatMap((each) => each.changes))
    const rare = new Set(['over the size limit'])
    const missing = [...BODY_MUTATIONS, ...HEAD_MUTATIONS].filter(({ name }) => !changes.has(name) && !rare.has(name))
    expect(missing.map(({ name }) => name)).toEqual([])
    expect(new Set(cases.map(({ seed }) => seed)).size).toBe(SEEDS.length)
    expect(cases.filter(({ changes: made }) => made.length === 0).length).toBeGreaterThan(200)
  })

  it('does not change the corpus', () => {
    const before = SEEDS.map(({ build }) => JSON.stringify(build({ ...CONTEXT, id: 1 })))
    for (let number = 0; number < 500; number++) caseOf(2, number)
    expect(SEEDS.map(({ build }) => JSON.stringify(build({ ...CONTEXT, id: 1 })))).toEqual(before)
  })
})
