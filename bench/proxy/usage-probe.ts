import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/* Loaded before a measured program (`node --import`): tells over IPC what the process has used so far. Itself it uses next to nothing. */

export interface Usage {
  /** Of this process alone, in microseconds: children are not counted. */
  readonly cpuUs: number
  readonly rssKb: number
  readonly heapKb: number
}

export interface UsageQuestion {
  readonly usage: 'now' | 'after gc'
}

process.on('message', ({ usage }: UsageQuestion) => {
  if (usage === 'after gc') collectGarbage()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  process.send?.({ cpuUs: user + system, rssKb: rss / 1024, heapKb: heapUsed / 1024 } satisfies Usage)
})
process.on('disconnect', () => process.exit()) // the parent process is gone
process.channel?.unref()

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let round = 0; round < 3; round++) gc()
}
