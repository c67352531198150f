import type { Figure } from './figure.ts'
import { startConstant } from './registry/bare-subject.ts'
import { startGetLoad } from './registry/get-burst.ts'
import { measureReads } from './registry/measure-reads.ts'
import { measureSync } from './registry/measure-sync.ts'
import { startRegistry } from './registry/registry-subject.ts'
import { openStorages } from './registry/storages.ts'

/* Costs of the registry server, beside a server that answers with constant bytes. BENCH_QUICK=1 for a look. */

export async function run(log: (line: string) => void): Promise<Figure[]> {
  const isQuick = process.env['BENCH_QUICK'] === '1'
  const sizes = isQuick ? [1_000, 10_000] : [1_000, 10_000, 100_000]
  const figures: Figure[] = []
  await using storages = await openStorages(log)
  await using bare = await startConstant()
  using load = await startGetLoad()
  for (const storage of storages.all) {
    for (const count of sizes) {
      await using registry = await startRegistry({ count, storage: await storage.fresh() })
      const about = `${count.toLocaleString('en')} servers, ${storage.name}`
      const idle = await registry.process.usage({ gc: true })
      log(`${about}: listed after ${registry.listedMs.toFixed(0)} ms, searched after ${registry.searchedMs.toFixed(0)} ms`)
      figures.push(...startFigures(about, count, { ...registry, rssMb: idle.rssKb / 1024 }))
      const reads = { bare, registry, load, count, about, log, rounds: isQuick ? 3 : 9, durationMs: isQuick ? 200 : 400 }
      // They never come to the store.
      if (storage === storages.all[0]) figures.push(...(await measureReads(reads)))
      figures.push(...(await measureSync({ registry, count, about })))
    }
  }
  return figures
}

/** The aims are for 10,000 servers; the baseline is an empty process. */
function startFigures(about: string, count: number, measured: { listedMs: number; searchedMs: number; rssMb: number }): Figure[] {
  const isAimed = count === 10_000
  const figure = (name: string, unit: string, value: number, limit: number): Figure => ({
    ...{ name: `${name}, ${about}`, unit, value, baseline: 0 },
    ...(isAimed && { aim: { of: 'difference' as const, limit } }),
  })
  return [
    figure('start until all are listed', 'ms', measured.listedMs, 2_000),
    figure('start until ranked search answers', 'ms', measured.searchedMs, 4_000),
    figure('memory', 'MB', measured.rssMb, 250),
  ]
}
