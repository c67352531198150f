import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { REQUIREMENTS } from './all.ts'
import { judgeCoverage } from './coverage.ts'
import type { Requirement } from './requirement.ts'

const MAX_WORDS = 20

describe.each(REQUIREMENTS.map((document) => [document.document, document] as const))(
  'requirements of document %s',
  (id, { rows, atLeast }) => {
    it('are all there', () => {
      console.log(`document ${id}: ${rows.length} requirements`)
      expect(rows.length).toBeGreaterThanOrEqual(atLeast)
    })

    it('have consecutive ids in the order of the document', () => {
      expect(rows.map((row) => row.id)).toEqual(rows.map((_, index) => `${id}-${String(index + 1).padStart(3, '0')}`))
      expect(rows.map((row) => row.line)).toEqual(rows.map((row) => row.line).toSorted((a, b) => a - b))
    })

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
  },
)

describe('coverage', () => {
  const row = (id: Requirement['id'], state: Requirement['state']): Requirement => ({
    id,
    section: 's',
    line: 1,
    kind: 'feature',
    text: 't',
    state,
  })

  it('passes when each met row is cited by a passed test', () => {
    expect(judgeCoverage([row('000-001', 'met'), row('000-002', 'planned')], ['does it [000-001]'])).toEqual([])
  })

  it('finds a met row without a passed test, and a citation of an unknown row', () => {
    expect(judgeCoverage([row('000-001', 'met')], ['other [000-009]'])).toEqual([
      '000-001 claims to be met, but no passed test cites [000-001]',
      'a test cites [000-009], which is no requirement',
    ])
  })

  it('finds a row that is still planned though a test proves it', () => {
    expect(judgeCoverage([row('000-001', 'planned')], ['does it [000-001]'])).toEqual([
      '000-001 is cited by a passed test but still says planned',
    ])
  })
})
