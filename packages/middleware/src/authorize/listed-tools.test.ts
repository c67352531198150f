import { expect, it } from 'vitest'
import { ListedTools } from './listed-tools.ts'

it('says nothing before the first list, and nothing of old lists after an announcement', () => {
  const listed = new ListedTools()
  expect(listed.has('echo')).toBeUndefined()
  listed.note('echo')
  expect([listed.has('echo'), listed.has('other')]).toEqual([true, false])
  listed.clear()
  expect(listed.has('echo')).toBeUndefined()
})

it('is bounded, and then calls no tool unknown', () => {
  const listed = new ListedTools()
  for (let i = 0; i < 20_000; i++) listed.note(`tool-${i}`)
  expect([listed.has('tool-0'), listed.has('tool-19999'), listed.has('other')]).toEqual([true, undefined, undefined])
})

it('keeps no huge names', () => {
  const listed = new ListedTools()
  const huge = 'x'.repeat(1_000_000)
  listed.note('echo')
  listed.note(huge)
  expect(listed.has(huge)).toBeUndefined()
})
