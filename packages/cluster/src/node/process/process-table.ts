import { readdir, readFile } from 'node:fs/promises'

/** Every process of a container has this in its environment, so that those are found too that left its process group. */
export const CONTAINER_MARK = 'THV_CONTAINER'

/** To the process, or with a negative id to its group. False when there is none. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (error) {
    if (codeOf(error) === 'ESRCH' || codeOf(error) === 'EPERM') return false // EPERM: the id belongs to somebody else by now
    throw error
  }
}

/**
 * Kills whatever carries a mark that begins so, wherever it has moved. Best effort: a program may empty its environment, and only
 * Linux shows it.
 */
export async function killMarked(mark: string): Promise<void> {
  if (process.platform !== 'linux') return
  wanted.add(mark)
  // Many containers may end at once, and one look at all processes does for all of them; a look under way may have begun too early.
  const last = looking
  next ??= Promise.resolve(last?.catch(() => undefined)).then(() => {
    next = undefined
    const marks = [...wanted]
    wanted.clear()
    looking = killAll(marks)
    return looking
  })
  await next
}

const wanted = new Set<string>()
let looking: Promise<void> | undefined
let next: Promise<void> | undefined

async function killAll(marks: readonly string[]): Promise<void> {
  for (const name of await readdir('/proc')) {
    if (!/^[1-9]\d*$/.test(name) || Number(name) === process.pid) continue
    const environment = await readFile(`/proc/${name}/environ`).catch(() => undefined) // gone, or another user's
    const value = environment && markIn(environment)
    if (value !== undefined && marks.some((mark) => value.startsWith(mark))) sendSignal(Number(name), 'SIGKILL')
  }
}

const ENTRY = Buffer.from(`${CONTAINER_MARK}=`)
const MAX_MARK = 200

/** The value of the variable of exactly this name: others may end with it. */
function markIn(environment: Buffer): string | undefined {
  for (let at = environment.indexOf(ENTRY); at >= 0; at = environment.indexOf(ENTRY, at + 1)) {
    const start = at + ENTRY.length
    if (at === 0 || environment[at - 1] === 0) return environment.toString('latin1', start, start + MAX_MARK)
  }
  return undefined
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
