import { runInScope } from '@thv/kernel/program-scope'
import { expect, it } from 'vitest'
import { LineWriter } from './line-writer.ts'
import { standardOutput } from './standard-output.ts'

it('writes the lines of a program that shares its process to the output of that program, and waits while its reader is slow', async () => {
  let isSlow = true
  let refused = 0
  const texts: string[] = []
  const writeOutput = (text: string) => {
    if (isSlow) refused++
    else texts.push(text)
    return !isSlow
  }
  const output = runInScope({ env: {}, cwd: '/', writeOutput, onEnd: () => ({ [Symbol.dispose]() {} }) }, () => standardOutput())
  const writer = new LineWriter({ output, droppedLine: (count) => `${count} dropped\n` })
  writer.write('{"event":1}\n')
  await expect.poll(() => refused).toBeGreaterThan(1)
  isSlow = false
  writer.write('{"event":"é"}\n')
  await writer.close()
  expect(texts.join('')).toBe('{"event":1}\n{"event":"é"}\n')
})
