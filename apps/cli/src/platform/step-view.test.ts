import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it, vi } from 'vitest'
import type { ProgramEnv } from '../program.ts'
import { createStepView } from './step-view.ts'

function view(isTerminal: boolean, columns = 60) {
  let err = ''
  const print = (text: string) => {
    err += text
  }
  const env: ProgramEnv = { out: print, err: print, cwd: '/', variables: {}, isTerminal, columns }
  return { steps: createStepView(env), text: () => err }
}

describe('steps of a start', () => {
  it('are a line each elsewhere, printed when they begin', () => {
    const { steps, text } = view(false)
    steps.step('Building')
    expect(text()).toBe('Building …\n')
    steps.step('Starting')
    steps.end()
    expect(text()).toBe('Building …\nStarting …\n')
  })

  it('are written over on a terminal until they are done', async () => {
    const { steps, text } = view(true)
    steps.step('Building')
    expect(stripVTControlCharacters(text())).toMatch(/^\r {2}… +\d+\.\d s {2}Building$/)
    await vi.waitFor(() => expect(text().split('\r').length).toBeGreaterThan(3), { timeout: 15_000 })
    expect(text()).not.toContain('\n')
    steps.step('Starting')
    steps.end('failed')
    const lines = text().split('\n')
    expect(lines).toHaveLength(3)
    expect(stripVTControlCharacters(lines[0] ?? '')).toMatch(/\r {2}✓ +\d+\.\d s {2}Building$/)
    expect(stripVTControlCharacters(lines[1] ?? '')).toMatch(/\r {2}✗ +\d+\.\d s {2}Starting$/)
    const before = text()
    steps.end()
    expect(text()).toBe(before)
  })

  it.each([30, 500])('fit into a terminal of %i columns, and into 100', (columns) => {
    const { steps, text } = view(true, columns)
    steps.step('x'.repeat(400))
    steps.end()
    for (const line of text().split(/[\r\n]/)) expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(Math.min(columns, 100))
  })
})
