import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from './registry-world.ts'

/** Clients that read all the time, and what went wrong for them. */
export interface Traffic {
  readonly answered: number
  /** Resolves when so many more requests have been answered. */
  more(count: number): Promise<void>
  /** Answers other than 200, in words. */
  stop(): Promise<readonly string[]>
}

export interface TrafficOptions {
  readonly headers?: () => Record<string, string>
  /** Of a client after each answer. */
  readonly pauseMs?: number
}

const CLIENTS = 3
const PAUSE_MS = 4

/** Each client goes through the paths, and one follows the cursors of the list. */
export function startTraffic(base: string, paths: readonly string[], options: TrafficOptions = {}): Traffic {
  const { headers = () => ({}), pauseMs = PAUSE_MS } = options
  const stopped = new AbortController()
  const failures: string[] = []
  let answered = 0

  async function ask(path: string): Promise<string | undefined> {
    try {
      const answer = await fetch(`${base}${path}`, { headers: headers(), signal: AbortSignal.timeout(30_000) })
      const text = await answer.text()
      answered++
      if (answer.status === 200) return text
      failures.push(`${path}: ${answer.status} ${text.slice(0, 200)}`)
    } catch (error) {
      failures.push(`${path}: ${String(error)} ${String((error as Error).cause ?? '')}`)
    }
    return undefined
  }

  async function follow(list: string): Promise<void> {
    let cursor = ''
    while (!stopped.signal.aborted) {
      const text = await ask(`${list}?limit=50${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)
      cursor = text === undefined ? '' : (JSON.parse(text).metadata?.nextCursor ?? '')
      await sleep(pauseMs)
    }
  }

  async function repeat(offset: number): Promise<void> {
    for (let i = offset; !stopped.signal.aborted; i++) {
      await ask(paths[i % paths.length] ?? '')
      await sleep(pauseMs)
    }
  }

  const [list = ''] = paths
  const running = [follow(list), ...Array.from({ length: CLIENTS - 1 }, (_, n) => repeat(n))]
  return {
    get answered() {
      return answered
    },
    async more(count) {
      const goal = answered + count
      await eventually(`${count} more answers`, () => answered >= goal)
    },
    async stop() {
      stopped.abort()
      await Promise.all(running)
      return failures
    },
  }
}
