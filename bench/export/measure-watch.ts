import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeClient } from '@thv/kube'
import type { Figure } from '../figure.ts'
import { median } from '../figure.ts'
import { inParallel } from '../operator/server-load.ts'
import { changeUrl, entryName, type Size } from './cluster-data.ts'
import type { CountingProxy } from './counting-proxy.ts'
import { type ClusterRegistry, DEBOUNCE_MS, until } from './registry-subject.ts'

export interface WatchBench {
  readonly client: KubeClient
  readonly proxy: CountingProxy
  /** Of the whole cluster, through the proxy. */
  readonly registry: ClusterRegistry
  /** Of a tenth of it. */
  readonly small: ClusterRegistry
  readonly size: Size
  readonly quietMs: number
  readonly changes: number
  readonly storm: number
  readonly log: (line: string) => void
}

export async function measureWatch(bench: WatchBench): Promise<Figure[]> {
  const { proxy, log, quietMs } = bench
  log('watch mode: idle …')
  await sleep(quietMs)
  proxy.taken()
  await sleep(2 * quietMs)
  const idle = proxy.taken().length
  const changed = await measureChanges(bench)
  return [
    { name: 'watch mode: requests when nothing happens', unit: '', value: idle, baseline: 0, aim: { of: 'difference', limit: 0.5 } },
    ...changed,
    ...(await measureStorm(bench)),
  ]
}

async function measureChanges({ client, proxy, registry, small, changes, quietMs, log }: WatchBench): Promise<Figure[]> {
  log(`${changes} annotations change, one after the other; as many servers are published …`)
  const published: number[] = []
  for (let index = 0; index < changes; index++) published.push(await registry.publish(`io.example/published-${index}`))
  proxy.taken()
  const times: number[] = []
  const cpu = { all: [] as number[], small: [] as number[] }
  for (let index = 0; index < changes; index++) {
    const before = { all: await cpuOf(registry), small: await cpuOf(small) }
    const word = `changed-${index}`
    const began = performance.now()
    await changeUrl(client, 0, 0, word)
    for (const each of [registry, small]) await until(each.process, async () => (await each.urlOf(entryName(0, 0))).endsWith(`/${word}`))
    times.push(performance.now() - began - DEBOUNCE_MS)
    cpu.all.push((await cpuOf(registry)) - before.all)
    cpu.small.push((await cpuOf(small)) - before.small)
  }
  await sleep(quietMs)
  const requests = proxy.taken().length
  const ms = { unit: 'ms' }
  return [
    { name: 'requests per changed annotation', unit: '', value: requests / changes, baseline: 0, aim: { of: 'difference', limit: 0.05 } },
    {
      ...{ name: 'changed annotation until the API has it, less the debounce', ...ms },
      ...{ value: median(times), baseline: median(published), aim: { of: 'ratio', limit: 3 } },
    },
    {
      ...{ name: 'CPU per changed annotation, beside a tenth of the resources', ...ms },
      ...{ value: median(cpu.all), baseline: median(cpu.small), aim: { of: 'ratio', limit: 2 } },
    },
  ]
}

async function measureStorm({ client, registry, size, storm, log }: WatchBench): Promise<Figure[]> {
  log(`${storm} annotations change, as fast as the API server takes them …`)
  await sleep(2 * DEBOUNCE_MS)
  const before = await registry.rebuilds()
  await registry.stallMs()
  const began = performance.now()
  const targets = Array.from({ length: storm }, (_, at) => [at % size.namespaces, 2 * Math.floor(at / size.namespaces)] as const)
  await inParallel(targets, ([team, index]) => changeUrl(client, team, index, 'storm'))
  const seconds = (performance.now() - began) / 1000
  const last = targets.at(-1) ?? ([0, 0] as const)
  await until(registry.process, async () => (await registry.urlOf(entryName(...last))).endsWith('/storm'))
  await sleep(2 * DEBOUNCE_MS)
  const rebuilds = (await registry.rebuilds()) - before
  const stall = await registry.stallMs()
  return [
    { name: `time that ${storm} changes took to be written`, unit: 's', value: seconds, baseline: 1 },
    // Bounded by the windows of five seconds that the storm lasts.
    { name: `rebuilds for ${storm} changes`, unit: '', value: rebuilds, baseline: 0, aim: { of: 'difference', limit: 5 } },
    { name: 'longest stall of the event loop meanwhile', unit: 'ms', value: stall, baseline: 0, aim: { of: 'difference', limit: 50 } },
  ]
}

async function cpuOf({ process: child }: ClusterRegistry): Promise<number> {
  return (await child.usage()).cpuUs / 1000
}
