import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import { createInterface } from 'node:readline'

// Started by process-guard.ts; see there. No other import: it must be up within milliseconds.

const groups = new Set<number>()
const folders = new Set<string>()

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const [verb, ...rest] = line.split(' ')
  const argument = rest.join(' ')
  if (verb === 'watch' && Number(argument) > 1) groups.add(Number(argument))
  if (verb === 'forget') groups.delete(Number(argument))
  if (verb === 'remove' && basename(argument).startsWith('thv-testkit-')) folders.add(argument)
})
lines.on('close', cleanUp)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, cleanUp)

function cleanUp(): void {
  for (const group of groups) kill(group)
  // The killed ones may still be writing for a moment; rm retries on ENOTEMPTY.
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  process.exit(0)
}

function kill(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') console.error(`process guard: could not end ${group}: ${error}`)
  }
}
