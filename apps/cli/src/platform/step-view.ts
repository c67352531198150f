import type { ProgramEnv } from '../program.ts'
import { shortened } from '../text/plain-text.ts'
import { MAX_COLUMNS } from '../text/wrapped.ts'

/** Names each step of a start when it begins: on a terminal with its time, written over while it goes on; elsewhere one line each. */
export interface StepView {
  /** The one before it is done. */
  step(text: string): void
  /** All are done, or the last one failed. Nothing is written afterwards. */
  end(outcome?: 'done' | 'failed'): void
}

const TICK_MS = 250

export function isLive(env: ProgramEnv): boolean {
  return env.isTerminal && !env.variables['CI']
}

/** Some terminals do not know their width, and say 0. Whatever it is, lines are never wider than they are elsewhere. */
export function widthOf({ columns = 0 }: ProgramEnv): number {
  return columns > NARROWEST ? Math.min(columns, MAX_COLUMNS) : 80
}

const NARROWEST = 20

export function createStepView(env: ProgramEnv): StepView {
  return isLive(env) ? liveSteps(env) : { step: (text) => env.err(`${text} …\n`), end: () => {} }
}

function liveSteps(env: ProgramEnv): StepView {
  const width = widthOf(env) - 2
  let current: { readonly text: string; readonly since: number } | undefined
  let ticking: NodeJS.Timeout | undefined
  const draw = (mark: string, end: string) => {
    if (current === undefined) return
    const time = `${((performance.now() - current.since) / 1_000).toFixed(1)} s`
    env.err(`\r\x1b[K  ${shortened(`${mark} ${time.padStart(6)}  ${current.text}`, width)}${end}`)
  }
  const finish = (mark: string) => {
    clearInterval(ticking)
    draw(mark, '\n')
    current = undefined
  }
  return {
    step(text) {
      finish('✓')
      current = { text, since: performance.now() }
      draw('…', '')
      ticking = setInterval(() => draw('…', ''), TICK_MS)
      ticking.unref()
    },
    end: (outcome = 'done') => finish(outcome === 'done' ? '✓' : '✗'),
  }
}
