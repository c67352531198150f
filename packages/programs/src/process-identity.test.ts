import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { isAlive, ownIdentity, processStart, startFromStat } from './process-identity.ts'

describe('process identity', () => {
  test('our own is alive', () => expect(isAlive(ownIdentity())).toBe(true))

  test('another process with the same id is not it', () => expect(isAlive({ pid: process.pid, start: '1' })).toBe(false))

  test('a process that has ended is gone', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'])
    const pid = child.pid ?? 0
    const identity = { pid, start: processStart(pid) ?? '' }
    expect(isAlive(identity)).toBe(true)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(processStart(pid)).toBeUndefined()
    expect(isAlive(identity)).toBe(false)
  })

  const fields = (state: string) => [state, ...Array.from({ length: 30 }, (_, index) => String(index + 100))].join(' ')
  test.each([
    ['a plain command', `12 (node) ${fields('S')}`, '118'],
    ['brackets and blanks in the command', `12 (a) R (b) ${fields('R')}`, '118'],
    ['a zombie', `12 (node) ${fields('Z')}`, undefined],
  ])('reads /proc stat: %s', (_, stat, start) => expect(startFromStat(stat)).toBe(start))
})
