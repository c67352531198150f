import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/* Loaded before a measured program (`node --import`): tells over IPC what the process has used so far. Itself it uses next to nothing. */

export interface Usage {
  /** Of this process alone, in microseconds: children are not counted. */
  readonly cpuUs: number
  readonly rssKb: number
  readonly heapKb: number
  /** Of V8's heap, in use or not. */
  readonly committedKb: number
  /** Buffers. */
  readonly externalKb: number
}

export interface UsageQuestion {
  /** `released`: after the collection that our programs make themselves in quiet moments, which gives pages back. */
  readonly usage: 'now' | 'after gc' | 'released'
}

process.on('message', async ({ usage }: UsageQuestion) => {
  if (usage === 'after gc') collectGarbage()
  if (usage === 'released') await releaseMemory()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage()
  process.send?.({
    ...{ cpuUs: user + system, rssKb: rss / 1024, heapKb: heapUsed / 1024 },
    ...{ committedKb: heapTotal / 1024, externalKb: (external + arrayBuffers) / 1024 },
  } satisfies Usage)
})
process.on('disconnect', () => process.exit()) // the parent process is gone
process.channel?.unref()

type Collect = (options?: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => unknown

function collector(): Collect {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as Collect
}

function collectGarbage(): void {
  const gc = collector()
  for (let round = 0; round < 3; round++) gc()
}

async function releaseMemory(): Promise<void> {
  const gc = collector()
  for (let round = 0; round < 2; round++) await gc({ type: 'major', execution: 'async', flavor: 'last-resort' })
}
