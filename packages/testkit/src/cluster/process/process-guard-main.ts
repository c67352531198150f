import { readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'

// Started by process-guard.ts; see there. No other import: it must be up within milliseconds.

const groups = new Set<number>()
const folders = new Set<string>()
const controlGroups = new Set<string>()
const settings = new Map<string, string>()
const controlGroupLimitMs = 8000

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const [verb, ...rest] = line.split(' ')
  const argument = rest.join(' ')
  if (verb === 'watch' && Number(argument) > 1) groups.add(Number(argument))
  if (verb === 'forget') groups.delete(Number(argument))
  if (verb === 'remove' && basename(argument).startsWith('thv-testkit-')) folders.add(argument)
  if (verb === 'cgroup' && basename(argument).startsWith('thv-testkit-')) controlGroups.add(argument)
  if (verb === 'restore' && rest[0]?.startsWith('/proc/sys/')) settings.set(rest[0], rest.slice(1).join(' '))
})
lines.on('close', cleanUp)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, cleanUp)

function cleanUp(): void {
  for (const group of groups) kill(group)
  for (const [path, value] of settings) attempt(`restore ${path}`, () => writeFileSync(path, value))
  const deadline = Date.now() + controlGroupLimitMs
  for (const folder of controlGroups) attempt(`remove ${folder}`, () => removeControlGroup(folder, deadline))
  // The killed ones may still be writing for a moment; rm retries on ENOTEMPTY.
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  process.exit(0)
}

/** Its files cannot be deleted, only its folders, from the leaves up, and each only after its last process has ended. */
function removeControlGroup(folder: string, deadline: number): void {
  for (;;) {
    try {
      for (const entry of readdirSync(folder, { withFileTypes: true }))
        if (entry.isDirectory()) removeControlGroup(join(folder, entry.name), deadline)
      rmdirSync(folder)
      return
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code === 'ENOENT') return
      if (code !== 'EBUSY' || Date.now() > deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
  }
}

function attempt(what: string, act: () => void): void {
  try {
    act()
  } catch (error) {
    console.error(`process guard: could not ${what}: ${error}`)
  }
}

function kill(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') console.error(`process guard: could not end ${group}: ${error}`)
  }
}
