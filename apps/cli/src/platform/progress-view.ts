import type { ProgramEnv } from '../program.ts'
import { shortened } from '../text/plain-text.ts'
import { wrapped } from '../text/wrapped.ts'
import type { ServerState } from './server-states.ts'
import { isLive, widthOf } from './step-view.ts'

/** Shows how far everything is: on a terminal one line each, written over; elsewhere a line for each step. */
export interface ProgressView {
  show(states: readonly ServerState[], elapsedMs: number): void
  /** Leaves the last picture on the screen. */
  end(): void
}

const MARKS: Readonly<Record<ServerState['state'], string>> = { waiting: '·', pulling: '↓', starting: '…', ready: '✓', failing: '✗' }
const COLOURS: Readonly<Record<ServerState['state'], string>> = {
  waiting: '\x1b[2m',
  pulling: '\x1b[36m',
  starting: '\x1b[33m',
  ready: '\x1b[32m',
  failing: '\x1b[31m',
}
const RESET = '\x1b[0m'

export function createProgressView(env: ProgramEnv): ProgressView {
  return isLive(env) ? liveView(env, widthOf(env)) : plainView(env)
}

function plainView(env: ProgramEnv): ProgressView {
  const last = new Map<string, string>()
  return {
    show(states, elapsedMs) {
      for (const each of states) {
        const text = textOf(each)
        if (last.get(each.name) === text) continue
        last.set(each.name, text)
        env.err(`${wrapped(`${each.name}: ${text} (${seconds(elapsedMs)})`, { indent: 4 })}\n`)
      }
    },
    end: () => {},
  }
}

function liveView(env: ProgramEnv, columns: number): ProgressView {
  let drawn = 0
  /** How long each took to get ready. */
  const doneAt = new Map<string, number>()
  return {
    show(states, elapsedMs) {
      const width = Math.max(...states.map(({ name }) => name.length), 0)
      const lines = states.map((each) => {
        if (each.state !== 'ready') doneAt.delete(each.name)
        else if (!doneAt.has(each.name)) doneAt.set(each.name, elapsedMs)
        const time = seconds(doneAt.get(each.name) ?? elapsedMs).padStart(6)
        const text = shortened(`${MARKS[each.state]} ${each.name.padEnd(width)} ${time}  ${textOf(each)}`, columns - 2)
        return `\x1b[K  ${COLOURS[each.state]}${text}${RESET}\n`
      })
      env.err(`${drawn > 0 ? `\x1b[${drawn}A` : ''}${lines.join('')}\x1b[J`)
      drawn = lines.length
    },
    end: () => {
      drawn = 0
    },
  }
}

function textOf({ state, detail, url }: ServerState): string {
  if (state === 'ready') return url === undefined ? 'ready' : `is ready at ${url}`
  return detail === '' ? state : `${state} ${detail}`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
