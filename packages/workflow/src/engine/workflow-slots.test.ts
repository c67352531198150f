import { expect, it } from 'vitest'
import { WorkflowSlots } from './workflow-slots.ts'

it('slots are bounded in all and per principal, and freed once', () => {
  const slots = new WorkflowSlots({ total: 3, perPrincipal: 2 })
  const first = slots.take('ann')
  slots.take('ann')
  expect(slots.take('ann')).toBeUndefined()
  expect(slots.take('bob')).toBeDefined()
  expect(slots.take('eve')).toBeUndefined()
  first?.()
  first?.()
  expect(slots.running).toBe(2)
  expect(slots.take('eve')).toBeDefined()
  expect(slots.take('ann')).toBeUndefined()
})
