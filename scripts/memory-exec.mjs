// Starts this program once more in the same process, with the memory settings of our programs: V8 and malloc read them at a start only.
// For the local platform, which lives long; other commands are over before it would pay. Plain JavaScript for any Node.
import { readFileSync } from 'node:fs'

const SETTINGS = new URL('../packages/programs/src/memory-settings.json', import.meta.url)
/** Set for the second start, which must never start a third: newer C libraries take malloc's variables from a Node with capabilities. */
const GUARD = 'THV_MEMORY_EXEC'

/** Returns where all of them are set, by us or by the user, in the second start, and on systems that cannot replace a process. Else it never returns. */
export function execWithMemorySettings({ env = process.env, execve = process.execve } = {}) {
  const isSecond = env[GUARD] !== undefined
  delete env[GUARD]
  /** @type {Record<string, string>} */
  const settings = JSON.parse(readFileSync(SETTINGS, 'utf8'))
  const missing = Object.entries(settings).filter(([name]) => !env[name])
  if (isSecond || missing.length === 0 || execve === undefined) return
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  try {
    execve.call(process, process.execPath, args, { ...env, ...Object.fromEntries(missing), [GUARD]: '1' })
  } catch {
    // It goes on as it is, with more memory.
  }
}
