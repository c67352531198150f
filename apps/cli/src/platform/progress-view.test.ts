import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { ProgramEnv } from '../program.ts'
import { createProgressView } from './progress-view.ts'
import type { ServerState } from './server-states.ts'

function view(isTerminal: boolean, variables: ProgramEnv['variables'] = {}, columns = 60) {
  let err = ''
  const env: ProgramEnv = {
    out: () => {},
    err: (text) => {
      err += text
    },
    cwd: '/',
    variables,
    isTerminal,
    columns,
  }
  return { view: createProgressView(env), text: () => err }
}

const pulling: ServerState = { name: 'a', state: 'pulling', detail: `npx://${'x'.repeat(80)}` }
const ready: ServerState = { name: 'a', state: 'ready', url: 'http://127.5.0.1:8080/mcp', detail: '' }
const waiting: ServerState = { name: 'longer', state: 'waiting', detail: '' }

describe('progress', () => {
  it.each([
    ['elsewhere', false, {}],
    ['in CI', true, { CI: '1' }],
  ] as const)('%s is a line for each step', (_title, isTerminal, variables) => {
    const { view: shown, text } = view(isTerminal, variables)
    shown.show([waiting], 0)
    shown.show([waiting], 1_000)
    shown.show([{ ...ready, name: 'longer' }], 2_340)
    shown.end()
    expect(text()).toBe('longer: waiting (0.0 s)\nlonger: is ready at http://127.5.0.1:8080/mcp (2.3 s)\n')
  })

  it('on a terminal is one line for each server, written over', () => {
    const { view: shown, text } = view(true)
    shown.show([pulling, waiting], 500)
    const first = text()
    expect(first.split('\n')).toHaveLength(3)
    expect(first).toContain('↓ a       0.5 s  pulling npx://xxx')
    for (const line of first.split('\n')) expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(60)
    shown.show([ready, waiting], 1_500)
    shown.show([ready, waiting], 9_000)
    expect(text().slice(first.length).startsWith('\x1b[2A\x1b[K')).toBe(true)
    expect(text()).toContain('✓ a       1.5 s  is ready at')
    expect(text()).not.toContain('✓ a       9.0 s')
    expect(text()).toContain('· longer  9.0 s  waiting')
  })

  it('on a terminal of unknown width is still whole', () => {
    const { view: shown, text } = view(true, {}, 0)
    shown.show([ready], 1_500)
    expect(text()).toContain('✓ a  1.5 s  is ready at http://127.5.0.1:8080/mcp')
  })
})
