import { Readable } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { encodeMessage } from './messages.ts'
import { runHost } from './run-host.ts'

it('a program whose main function fails prints its trace as watchers of uncaught errors leave it, such as that for source lines', async () => {
  const seen: unknown[] = []
  const watch = (error: Error) => {
    seen.push(error.message)
    error.stack = 'Error: it failed\n    at real.ts:1:1'
  }
  process.on('uncaughtExceptionMonitor', watch)
  onTestFinished(() => void process.off('uncaughtExceptionMonitor', watch))
  const sent: unknown[] = []
  await runHost({
    main: () => Promise.reject(new Error('it failed')),
    input: Readable.from([encodeMessage({ start: 1, args: ['run'], env: {}, cwd: '/' })]),
    write: (line) => sent.push(JSON.parse(line)),
  })
  expect(seen).toEqual(['it failed'])
  expect(sent).toEqual([
    { output: 1, stream: 'stderr', text: 'Error: it failed\n    at real.ts:1:1\n' },
    { exit: 1, code: 1 },
  ])
})
