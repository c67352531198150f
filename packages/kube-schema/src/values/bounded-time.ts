import { createContext, Script } from 'node:vm'

/** The work took longer than it may: a hostile pattern or rule. */
export class TimeExceeded extends Error {
  constructor(limitMs: number) {
    super(`took longer than ${limitMs} ms`)
    this.name = 'TimeExceeded'
  }
}

const call = new Script('work()')
const slot: { work?: () => unknown } = {}
let context: ReturnType<typeof createContext> | undefined

/**
 * Runs `work` and stops it when its time is over, regular expressions included: the only way to interrupt one in
 * JavaScript is the watchdog of node:vm. Not re-entrant by design: an inner call runs within the limit of the outer.
 */
export function boundedTime<T>(limitMs: number, work: () => T): T {
  if (slot.work) return work()
  context ??= createContext(slot)
  let result: { value: T } | undefined
  slot.work = () => {
    result = { value: work() }
  }
  try {
    call.runInContext(context, { timeout: limitMs })
  } catch (error) {
    if (isTimeout(error)) throw new TimeExceeded(limitMs)
    throw error
  } finally {
    delete slot.work
  }
  if (!result) throw new TimeExceeded(limitMs)
  return result.value
}

function isTimeout(error: unknown): boolean {
  return (error as { code?: string } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}
