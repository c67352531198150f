import { describe, expect, it } from 'vitest'
import type { Conflict } from '../aggregate/conflict.ts'
import { reportedStatus } from './reported-status.ts'

const conflict = (name: string, outcome: Conflict['outcome']): Conflict => ({ kind: 'tool', backend: 'a', original: name, name, outcome })

function conditionOf(conflicts: readonly Conflict[]) {
  const facts = { members: [], leftOut: [], conflicts, moved: [], isDiscovering: false, problem: undefined }
  return reportedStatus(facts, undefined, '2026-03-01T10:00:00Z').conditions.find(({ type }) => type === 'ToolConflicts')
}

describe('the condition about names', () => {
  it('[002-170] has a reason of its own while nothing says who gets a name, and names that first', () => {
    const others = Array.from({ length: 30 }, (_, index) => conflict(`other${index}`, 'renamed'))
    const { status, reason, message } = conditionOf([...others, conflict('search', 'unresolved')]) ?? {}
    expect({ status, reason }).toEqual({ status: 'True', reason: 'UnresolvedConflict' })
    expect(message).toMatch(/^tool search of a is unresolved; /)
    expect(message).toMatch(/; and 11 more$/)
  })

  it('says of settled conflicts how each one ended', () => {
    expect(conditionOf([conflict('x', 'lost')])).toMatchObject({ reason: 'NamesConflict', message: 'tool x of a is lost' })
    expect(conditionOf([])).toMatchObject({ status: 'False', reason: 'NoConflicts' })
  })
})
