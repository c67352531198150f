/** A line of a log with the time at which it was written. */
export interface TimedLine {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly text: string
}

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) ?/

/** Takes the time off that the API server puts in front of each line. A line without one is as old as the one before it. */
export function createStampReader(): (line: string) => TimedLine {
  let last = 0
  return (line) => {
    const [whole = '', stamp = ''] = STAMP.exec(line) ?? []
    const time = Date.parse(stamp)
    if (Number.isNaN(time)) return { time: last, text: line }
    last = time
    return { time, text: line.slice(whole.length) }
  }
}

/** Several logs as one, in the order of time. Each must be in order itself; of equal times the first log comes first. */
export async function* mergedLines<T extends TimedLine>(logs: readonly AsyncIterable<T>[]): AsyncGenerator<T, void, undefined> {
  const open = await Promise.all(
    logs.map(async (log) => {
      const lines = log[Symbol.asyncIterator]()
      return { lines, head: await lines.next() }
    }),
  )
  try {
    for (;;) {
      const [next] = open.filter(({ head }) => !head.done).sort((a, b) => timeOf(a.head) - timeOf(b.head))
      if (next === undefined || next.head.done) return
      yield next.head.value
      next.head = await next.lines.next()
    }
  } finally {
    await Promise.all(open.map(({ lines }) => lines.return?.()))
  }
}

function timeOf({ value, done }: IteratorResult<TimedLine>): number {
  return done ? Number.POSITIVE_INFINITY : value.time
}

/** Lines that come from several logs at once, printed in the order of time as far as they come in time. */
export function createOrderedPrinter(print: (text: string) => void, delayMs = 100) {
  let waiting: TimedLine[] = []
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    const lines = waiting.toSorted((a, b) => a.time - b.time)
    waiting = []
    for (const { text } of lines) print(text)
  }
  return {
    add(line: TimedLine): void {
      waiting.push(line)
      timer ??= setTimeout(flush, delayMs)
    },
    flush,
  }
}
