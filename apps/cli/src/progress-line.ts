import type { JsonObject } from '@thv/mcp/json-rpc'
import type { ProgramEnv } from './program.ts'
import { plainText, shortened } from './text/plain-text.ts'

export interface ProgressLine {
  show(progress: JsonObject): void
  /** Takes the line away before something else is printed. */
  clear(): void
}

/** One line on the terminal that is written over again and again. */
export function createProgressLine(env: Pick<ProgramEnv, 'err'>): ProgressLine {
  let isShown = false
  return {
    show({ progress, total, message }) {
      const done = typeof progress === 'number' ? progress : 0
      const share = typeof total === 'number' && total > 0 ? `${Math.min(100, Math.round((done / total) * 100))} %` : String(done)
      env.err(`${CLEAR_LINE}${shortened(`${share} ${plainText(message)}`.trimEnd(), 78)}`)
      isShown = true
    },
    clear() {
      if (isShown) env.err(CLEAR_LINE)
      isShown = false
    },
  }
}

const CLEAR_LINE = '\r\x1b[K'
